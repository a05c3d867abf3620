// TensorFlow's tutorial "Distributed training with DTensors", step by step and without the layer
// API: layers of variables, a tape, a training step that does not depend on devices, and three
// layouts of the same model that train one after the other over one checkpoint folder. apps/imdb
// does the same with layers and fit.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/base/write_file.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/training/callbacks/progress_bar.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/app_options.hpp"
#include "apps/common/run_app.hpp"
#include "apps/common/temporary_folder.hpp"

namespace tutorial {

using namespace tessera;

constexpr int64_t num_tokens = 1200, num_hidden = 48, num_classes = 2, batch_size = 64;

// y_j = activation(sum_i x_i W_ij + b_j)
class Dense {
 public:
  Dense(const std::string& name, int64_t input_size, int64_t output_size, Seed init_seed,
        const Layout& weight_layout, ActivationHandle activation, at::ScalarType dtype)
      : activation_(std::move(activation)) {
    const auto random_normal = [&] {
      return stateless_normal({input_size, output_size}, init_seed, 0, 1, dtype);
    };
    const auto zero = [&] { return zeros({output_size}, dtype); };
    weight_ = Variable(name + "/weight", call_with_layout(random_normal, weight_layout));
    // The bias is sharded like the last axis of the weight.
    bias_ = Variable(name + "/bias", call_with_layout(zero, weight_layout.remove({0})));
  }

  DTensor operator()(const DTensor& x) const {
    return activation_(ops::matmul(x, weight_.read()) + bias_.read());
  }
  std::vector<Variable> variables() const { return {weight_, bias_}; }

 private:
  ActivationHandle activation_;
  Variable weight_, bias_;
};

// Has no variables and needs no layout: x is the global batch.
class BatchNorm {
 public:
  DTensor operator()(const DTensor& x) const {
    const auto [mean, variance] = ops::moments(x, {0});
    return (x - mean) * ops::rsqrt(variance + 1e-5);
  }
};

using DenseLayouts = std::array<Layout, 2>;

class Mlp {
 public:
  Mlp(const DenseLayouts& layouts, at::ScalarType dtype)
      : dense1_("dense1", num_tokens, num_hidden, {1, 2}, layouts[0], "relu", dtype),
        dense2_("dense2", num_hidden, num_classes, {3, 4}, layouts[1], "linear", dtype) {}
  virtual ~Mlp() = default;

  virtual DTensor operator()(const DTensor& x) const { return dense2_(bn_(dense1_(x))); }

  std::vector<Variable> trainable_variables() const {
    std::vector<Variable> list = dense1_.variables();
    for (const Variable& variable : dense2_.variables()) list.push_back(variable);
    return list;
  }

 protected:
  Dense dense1_;
  BatchNorm bn_;
  Dense dense2_;
};

// The layouts of both layers depend on each other: this class derives them from the mesh dimensions
// of the three axes, and sets the layouts of intermediate values instead of leaving them to
// propagation.
class MlpStricter final : public Mlp {
 public:
  MlpStricter(const Mesh& mesh, const AxisSpec& input_dim, const AxisSpec& inner_dim,
              const AxisSpec& output_dim, at::ScalarType dtype)
      : Mlp({Layout({input_dim, inner_dim}, mesh), Layout({inner_dim, output_dim}, mesh)}, dtype),
        input_({"batch", input_dim}, mesh),
        inner_({"batch", inner_dim}, mesh),
        output_({"batch", output_dim}, mesh) {}

  DTensor operator()(const DTensor& x) const override {
    const DTensor y = relayout(dense1_(relayout(x, input_)), inner_);
    return relayout(dense2_(relayout(bn_(y), inner_)), output_);
  }

 private:
  Layout input_, inner_, output_;
};

// A scheme of parallel training: a mesh, and the mesh dimensions of tokens and hidden units.
struct Scheme {
  std::string name;
  MeshDims mesh;
  AxisSpec input_dim = unsharded;
  AxisSpec inner_dim = unsharded;
};

const std::vector<Scheme> schemes = {
    {"data", {{"batch", 8}}},
    {"model", {{"batch", 4}, {"model", 2}}, unsharded, "model"},
    {"spatial", {{"batch", 2}, {"feature", 2}, {"model", 2}}, "feature", "model"},
};

struct Flags {
  int64_t epochs = 2;
  std::optional<int64_t> steps;
  std::string model = "mlp";
  std::vector<std::string> schemes = {"data", "model", "spatial"};
  std::optional<double> learning_rate = 1e-2;
  std::string dtype = "float32";
  std::string data_dir;
  std::string checkpoint_dir;
  std::string history;
};

// Written for the global batch: mentions no mesh and no layout.
Logs train_step(const Mlp& model, const DTensor& x, const DTensor& y, double learning_rate) {
  std::vector<Variable> parameters = model.trainable_variables();
  std::vector<DTensor> values;
  for (const Variable& parameter : parameters) values.push_back(parameter.value());

  GradientTape tape;
  const DTensor logits = model(x);
  const DTensor loss = ops::sum(ops::sparse_softmax_cross_entropy(logits, y));
  const std::vector<DTensor> gradients = tape.gradient(loss, values);
  for (size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].assign_sub(gradients[i] * learning_rate);
  }

  const DTensor correct = ops::equal(ops::argmax(logits, -1), y);
  const DTensor hits = ops::sum(ops::cast(correct, at::kDouble));
  const auto rows = static_cast<double>(x.size(0));
  return {{"accuracy", hits.full().item<double>() / rows},
          {"loss", loss.full().item<double>() / rows}};
}

// Shards a batch from the host over the mesh: every device gets its shard only.
std::pair<DTensor, DTensor> repack_batch(const Examples& batch, const Scheme& scheme,
                                         const Mesh& mesh, at::ScalarType dtype) {
  return {pack(batch.x[0].to(dtype), Layout({"batch", scheme.input_dim}, mesh)),
          pack(batch.y[0], Layout({"batch"}, mesh))};
}

std::unique_ptr<Mlp> make_model(const std::string& kind, const Scheme& scheme, const Mesh& mesh,
                                at::ScalarType dtype) {
  const auto& [name, dims, input_dim, inner_dim] = scheme;
  if (kind == "stricter") {
    return std::make_unique<MlpStricter>(mesh, input_dim, inner_dim, unsharded, dtype);
  }
  const DenseLayouts layouts = {Layout({input_dim, inner_dim}, mesh),
                                Layout({inner_dim, unsharded}, mesh)};
  return std::make_unique<Mlp>(layouts, dtype);
}

// Trains with one scheme, starting from the latest checkpoint; returns the loss of every step.
std::vector<double> train(const Scheme& scheme, const Flags& flags, const Dataset& data,
                          const std::string& folder) {
  const at::ScalarType dtype = dtype_policy(flags.dtype).compute;
  const Mesh mesh = create_distributed_mesh(scheme.mesh);
  const bool prints = is_first_process(mesh);
  const std::unique_ptr<Mlp> model = make_model(flags.model, scheme, mesh, dtype);
  Checkpoint checkpoint(model->trainable_variables());
  CheckpointManager manager(checkpoint, folder, {.max_to_keep = 3});
  // The checkpoint may come from another mesh: every device reads the slices that it needs.
  const bool restored = manager.restore_latest().has_value();
  if (prints) {
    std::cout << scheme.name << " parallel, mesh " << mesh.describe() << ": "
              << (restored ? "restoring a checkpoint" : "new training") << std::endl;
  }
  int64_t done = 0;
  if (restored) done = JsonObject(checkpoint.extra(), JsonPath(folder)).take<int64_t>("steps");

  std::vector<double> losses;
  ProgressBar bar({.verbose = prints ? 1 : 0});
  for (int64_t epoch = 0; epoch < flags.epochs; ++epoch) {
    BatchLoader loader(data, {.batch_size = batch_size, .epoch = epoch, .steps = flags.steps});
    bar.start_epoch(epoch, flags.epochs, loader.steps());
    Logs metrics;
    for (int64_t step = 1; const std::optional<Examples> batch = loader.next(); ++step) {
      const auto [x, y] = repack_batch(*batch, scheme, mesh, dtype);
      metrics = train_step(*model, x, y, *flags.learning_rate);
      losses.push_back(*find_value(metrics, "loss"));
      bar.update(step, metrics);
    }
    bar.finish(metrics);
    done += *loader.steps();
    checkpoint.extra()["steps"] = done;
    manager.save(done);
  }
  return losses;
}

// Returns the reviews as rows of tf-idf weights, vectorized before training starts.
std::shared_ptr<const Dataset> vectorized_reviews(const std::string& data_dir) {
  const auto reviews = datasets::imdb({.split = "train", .path = data_dir, .synthetic = true});
  if (find_cluster().rank == 0) std::cout << reviews->announcement() << std::endl;
  const TextVectorization vectorize({.max_tokens = num_tokens, .output_mode = "tf_idf"});
  vectorize.adapt(reviews);
  return vectorize.dataset(reviews);
}

Flags parse(int argc, char** argv) {
  Flags flags;
  app::AppOptions options = app::AppOptions::bare(
      "dtensor_tutorial", "TensorFlow's tutorial \"Distributed training with DTensors\".");
  options.add({"epochs", "Training", "epochs per scheme", app::integer(flags.epochs, 1)});
  options.add({"steps", "Training", "maximum steps per epoch", app::integer(flags.steps, 1)});
  options.add({"learning-rate", "Training", "learning rate, for the summed loss",
               app::positive_number(flags.learning_rate)});
  options.add({"schemes", "Training", "schemes to train, in order",
               app::words(flags.schemes, "NAMES", {"data", "model", "spatial"})});
  options.add({"model", "Training", "the tutorial's MLP or its MLPStricter",
               app::choice(flags.model, {"mlp", "stricter"})});
  options.add({"dtype", "Training", "dtype of weights and data",
               app::choice(flags.dtype, {"float32", "float64"})});
  options.add({"data-dir", "Files", "folder of the reviews", app::input_folder(flags.data_dir)});
  options.add({"checkpoint-dir", "Files", "checkpoint folder; by default a temporary one",
               app::folder_name(flags.checkpoint_dir)});
  options.add({"history", "Files", "JSON file for the loss of every step",
               app::output_file(flags.history, "FILE")});
  if (!options.parse(argc, argv)) std::exit(0);
  return flags;
}

int run(int argc, char** argv) {
  const Flags flags = parse(argc, argv);
  const auto data = vectorized_reviews(flags.data_dir);
  const app::TemporaryDirectory temporary(create_distributed_mesh(schemes[0].mesh));
  const std::string folder = flags.checkpoint_dir.empty() ? temporary.path() : flags.checkpoint_dir;
  Json phases = Json::array();
  for (const std::string& name : flags.schemes) {
    const auto scheme = std::find_if(schemes.begin(), schemes.end(),
                                     [&](const Scheme& known) { return known.name == name; });
    phases.push_back({{"scheme", name}, {"steps", train(*scheme, flags, *data, folder)}});
  }
  if (!flags.history.empty() && find_cluster().rank == 0) {
    write_file(flags.history, to_json_text({{"phases", phases}}, -1) + "\n");
  }
  return 0;
}

}  // namespace tutorial

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, tutorial::run); }
