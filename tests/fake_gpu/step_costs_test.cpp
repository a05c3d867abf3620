#include <functional>
#include <iostream>
#include <map>

#include <tessera/tessera.hpp>

#include "tests/fake_gpu/gpus.hpp"
#include "tests/gpu/meshes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/golden_text.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace step_costs_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

constexpr int64_t batch_size = 16, classes = 10, words = 50;

TensorDataset data(const Shape& row, at::ScalarType dtype, int64_t labels = classes) {
  Shape shape = {8 * batch_size};
  shape.insert(shape.end(), row.begin(), row.end());
  const double above = dtype == at::kLong ? double(words) : 1;
  return TensorDataset(random_values({shape, dtype, 0, above}, 1),
                       random_values({{shape[0]}, at::kLong, 0, double(labels)}, 2));
}

/// A model and the data that it is trained on.
struct Work {
  std::string name;
  std::function<ModelHandle(bool score)> model;
  TensorDataset data;
  CompileOptions options;
  bool score = false;
};

CompileOptions classifier(const OptimizerHandle& optimizer = Adam()) {
  return {.optimizer = optimizer,
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .metrics = {"accuracy"}};
}

/// Returns a head for classes, or for one score in [0, 1].
Dense head(bool score) { return score ? Dense(1, {.activation = "sigmoid"}) : Dense(classes); }

ModelHandle mlp(bool score) { return Sequential({Dense(32, {.activation = "relu"}), head(score)}); }

ModelHandle mlp_with_dropout(bool score) {
  return Sequential({Dense(32, {.activation = "relu"}), Dropout(0.5), head(score)});
}

ModelHandle mean_of_words(bool score) {
  return Sequential({Embedding(words, 8), GlobalAveragePooling1D(), head(score)});
}

ModelHandle cnn(bool score) {
  return Sequential({Conv2D(8, 3, {.activation = "relu"}), BatchNormalization(), MaxPooling2D(2),
                     Flatten(), head(score)});
}

ModelHandle lstm(bool score) { return Sequential({Embedding(words, 8), LSTM(8), head(score)}); }

ModelHandle transformer(bool score) {
  const SymbolicTensor ids = Input({12}, {.dtype = "int64"});
  SymbolicTensor x = Embedding(words, 8)(ids);
  x = LayerNormalization()(Add()({x, MultiHeadAttention(2, 4)({x, x})}));
  x = LayerNormalization()(Add()({x, Dense(8)(Dense(16, {.activation = "gelu"})(x))}));
  return Functional({ids}, {head(score)(GlobalAveragePooling1D()(x))});
}

/// Returns a model that pools with padding and enlarges images.
ModelHandle resizing_model(bool score) {
  return Sequential({AveragePooling2D(3, {.strides = 2, .padding = "same"}),
                     UpSampling2D(2, {.interpolation = "lanczos3"}), Flatten(), head(score)});
}

/// Returns a model with every layer of random image augmentation.
ModelHandle augmenting_model(bool score) {
  return Sequential({RandomFlip(), RandomRotation(0.1), RandomZoom(0.1), RandomCrop(7, 6),
                     RandomTranslation(0.1, 0.1), RandomErasing(0.5), RandomPerspective(0.5),
                     RandomColorJitter({.brightness_factor = 0.1, .hue_factor = 0.1}), MixUp(),
                     CutMix(), RandAugment({.num_ops = 1}), RandomGrayscale(), RandomInvert(),
                     RandomGaussianBlur(), RandomElasticTransform(),
                     AugMix({.num_chains = 1, .chain_depth = 1}),
                     ContrastLimitedAdaptiveHistogramEqualization(), Flatten(), head(score)});
}

ModelHandle reader_of_sequences(bool) { return Sequential({Dense(6)}); }

/// A layer that divides ids before they are looked up.
class Halved final : public Layer {
 public:
  Halved() : Layer({.name = "halved"}) {}
  std::string class_name() const override { return "Halved"; }
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    const Layout scalar_layout = Layout::replicated(inputs[0].mesh(), 0);
    return ops::floor_div(inputs[0], filled({}, 2, at::kLong, scalar_layout));
  }
};

ModelHandle mean_of_halved_words(bool score) {
  return Sequential({LayerHandle(std::make_shared<Halved>()), Embedding(words, 8),
                     GlobalAveragePooling1D(), head(score)});
}

CompileOptions scores() {
  CompileOptions options = classifier();
  options.loss = BinaryCrossentropy();
  options.metrics = {AUC()};
  return options;
}

/// Returns all optimizers but Adam, including wrappers.
std::vector<std::pair<std::string, OptimizerHandle>> optimizers() {
  std::vector<std::pair<std::string, OptimizerHandle>> all;
  for (const std::string& name : optimizer_names()) {
    if (name != "Adam") all.emplace_back(name, OptimizerHandle(name.c_str()));
  }
  all.emplace_back("SGD, momentum", SGD(0.01, {.momentum = 0.9}));
  all.emplace_back("loss scale of SGD, momentum", LossScaleOptimizer(SGD(0.01, {.momentum = 0.9})));
  all.emplace_back("loss scale of accumulation",
                   LossScaleOptimizer(Adam(1e-3, {.gradient_accumulation_steps = 2})));
  return all;
}

/// Returns the works of the committed table; each step clips norms.
std::vector<Work> works() {
  const TensorDataset rows = data({20}, at::kFloat), texts = data({12}, at::kLong);
  std::vector<Work> all = {
      {"MLP", mlp, rows, classifier()},
      {"MLP, clipnorm", mlp, rows, classifier(Adam(1e-3, {.clipnorm = 1e-3}))},
      {"MLP, global_clipnorm", mlp, rows, classifier(Adam(1e-3, {.global_clipnorm = 1e-3}))},
      {"MLP, loss scale", mlp, rows, classifier(LossScaleOptimizer(Adam()))},
      {"MLP, moving averages", mlp, rows, classifier(Adam(1e-3, {.use_ema = true}))},
      {"MLP, accumulation", mlp, rows, classifier(Adam(1e-3, {.gradient_accumulation_steps = 2}))},
      {"MLP, AUC", mlp, data({20}, at::kFloat, 2), scores(), true},
      {"MLP, dropout", mlp_with_dropout, rows, classifier()},
      {"embedding", mean_of_words, texts, classifier()},
      {"CNN, batch norm", cnn, data({12, 12, 1}, at::kFloat), classifier()},
      {"LSTM", lstm, texts, classifier()},
      {"transformer", transformer, texts, classifier()},
  };
  for (const auto& [name, optimizer] : optimizers()) {
    all.push_back({str("MLP, ", name), mlp, rows, classifier(optimizer)});
  }
  return all;
}

/// Returns works that each add one feature to a training step.
std::vector<Work> works_with_everything() {
  const AdamOptions clipnorm{.clipnorm = 1e-3}, global_clipnorm{.global_clipnorm = 1e-3},
      clipvalue{.clipvalue = 1e-4}, averages{.use_ema = true, .ema_overwrite_frequency = 3},
      accumulation{.gradient_accumulation_steps = 2};
  const TensorDataset rows = data({20}, at::kFloat, 2), images = data({12, 12, 1}, at::kFloat, 2),
                      texts = data({12}, at::kLong, 2);
  std::vector<Work> all;
  const std::vector<Work> models = {{"MLP", mlp, rows, {}},
                                    {"CNN", cnn, images, {}},
                                    {"embedding", mean_of_words, texts, {}},
                                    {"transformer", transformer, texts, {}}};
  for (Work work : models) {
    const auto add = [&](const CompileOptions& options) {
      work.options = options;
      all.push_back(work);
    };
    for (const AdamOptions& options :
         {clipnorm, global_clipnorm, clipvalue, averages, accumulation}) {
      add(classifier(Adam(1e-3, options)));
    }
    for (const AdamOptions& options : {clipnorm, averages, accumulation}) {
      add(classifier(LossScaleOptimizer(Adam(1e-3, options))));
    }
    add(classifier(LossScaleOptimizer(
        MultiOptimizer(OptimizerMap(Adam(), {{".*bias", SGD(1e-3, {.momentum = 0.9})}})))));
    add(classifier(Adam(ExponentialDecay(1e-3, 10, 0.5))));
    work.score = true;
    add(scores());
  }
  for (const auto& [name, optimizer] : optimizers()) {
    all.push_back({name, mlp, rows, classifier(optimizer)});
  }
  return all;
}

/// Returns works whose operations read small tables, or check numbers before they compute.
std::vector<Work> works_with_tables_and_checks() {
  CompileOptions ctc;
  ctc.optimizer = Adam();
  ctc.loss = CTC();
  const TensorDataset images = data({8, 7, 2}, at::kFloat), texts = data({12}, at::kLong),
                      sequences(random_values({{8 * batch_size, 9, 4}, at::kFloat}, 1),
                                random_values({{8 * batch_size, 3}, at::kLong, 1, 6}, 2));
  return {{"images", resizing_model, images, classifier()},
          {"changed images", augmenting_model, data({8, 7, 3}, at::kFloat), classifier()},
          {"CTC", reader_of_sequences, sequences, ctc},
          {"division", mean_of_halved_words, texts, classifier()}};
}

/// The difference in counters between fits of eight and of four steps.
class Cost {
 public:
  Cost(const ModelHandle& model, const TensorDataset& data) : model_(model), data_(data) {
    // Trains until the step is captured.
    fit(4);
    fake_gpu::take_waits();
    const fake_gpu::Counters four = counted([&] { fit(4); });
    for (const std::string& name : fake_gpu::take_waits()) --waits_[name];
    const fake_gpu::Counters eight = counted([&] { fit(8); });
    for (const std::string& name : fake_gpu::take_waits()) ++waits_[name];
    counters_ = eight - four;
  }

  int64_t waits() const { return counters_.waits; }
  /// Returns the uploads per step.
  int64_t uploads() const { return counters_.uploads() / 4; }

  /// Describes a step's cost: "3 waits (3 _local_scalar_dense), 2 uploads, 40 kernels".
  std::string describe() const {
    std::string names;
    for (const auto& [name, count] : waits_) {
      if (count != 0) names += str(names.empty() ? "" : ", ", each(count), " ", name);
    }
    return str(each(counters_.waits), " waits", names.empty() ? "" : " (" + names + ")", ", ",
               each(counters_.uploads()), " uploads, ", each(counters_.kernels), " kernels");
  }

 private:
  void fit(int64_t steps) const {
    model_.fit(data_, {.batch_size = batch_size, .verbose = 0, .steps_per_epoch = steps});
  }
  static std::string each(int64_t count) { return str(double(count) / 4); }

  const ModelHandle& model_;
  const TensorDataset& data_;
  std::map<std::string, int64_t> waits_;
  fake_gpu::Counters counters_;
};

}  // namespace

TEST_CASE("waits, uploads and kernels of a step equal the committed table") {
  std::string table =
      "What a replayed training step of fit() asks of fake GPUs, on average: waits of the host\n"
      "and what waited, uploads, kernels; with Adam or who is named, cross-entropy and accuracy.\n";
  for (const int64_t gpus : {1, 2}) {
    table += str("\n", gpus, gpus == 1 ? " GPU\n" : " GPUs\n");
    for (Work& work : works()) {
      INFO(work.name);
      const Mesh mesh = gpu_mesh({{"batch", gpus}});
      work.options.layouts = LayoutMap(mesh);
      const ModelHandle model = work.model(work.score);
      model.compile(work.options);
      table += work.name + ": " + Cost(model, work.data).describe() + "\n";
      CHECK(model.step_records().why == "");
      CHECK(model.step_records().replayed == 14);
    }
  }
  std::cout << table;
  CHECK(golden_difference("fake_gpu_steps.txt", table) == "");
}

TEST_CASE("no step waits, whatever features it has, and only the batch is uploaded") {
  const Mesh mesh = gpu_mesh({{"batch", 1}});
  for (Work& work : works_with_everything()) {
    work.options.layouts = LayoutMap(mesh);
    CAPTURE(work.name, work.score, work.options.optimizer->config().dump());
    const ModelHandle model = work.model(work.score);
    model.compile(work.options);
    const Cost cost(model, work.data);
    CHECK(cost.describe().starts_with("0 waits, 2 uploads"));
    CHECK(cost.waits() == 0);
    CHECK(cost.uploads() == 2);
  }
}

TEST_CASE("no step waits or uploads for windows, weights, lengths and divisors") {
  for (const int64_t gpus : {1, 2}) {
    for (Work& work : works_with_tables_and_checks()) {
      CAPTURE(gpus, work.name);
      work.options.layouts = LayoutMap(gpu_mesh({{"batch", gpus}}));
      const ModelHandle model = work.model(false);
      model.compile(work.options);
      const Cost cost(model, work.data);
      CHECK(cost.describe().starts_with(str("0 waits, ", 2 * gpus, " uploads")));
      CHECK(cost.waits() == 0);
      CHECK(cost.uploads() == 2 * gpus);
    }
  }
}

}  // namespace step_costs_test
