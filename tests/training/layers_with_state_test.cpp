// fit() of every layer that keeps something between steps: states, moving statistics, counts of
// draws, metrics, adapted statistics. Replayed and eager steps on several meshes equal steps
// computed by hand from the same weights.
#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/tessera.hpp>

#include <memory>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/nn/internal/layer_states.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace layers_with_state_test {

using namespace tessera;
using namespace tessera::detail;
using test::difference;

namespace {

constexpr int64_t batch_rows = 4, batches = 3, epochs = 3, units = 3, steps = 5, features = 2;
constexpr const char* dtype = "float64";

at::Tensor all_x() { return test::random_values({{batch_rows * batches, steps, features}}, 1); }
at::Tensor all_y() { return test::random_values({{batch_rows * batches, 1}}, 2); }

DTensor on_one(const at::Tensor& full) {
  return pack(full, Layout::replicated(default_mesh(), full.dim()));
}
DTensor constant(const DTensor& x) { return on_one(x.full().clone()); }

/// The values that a training loop by hand carries from step to step.
struct Hand {
  int64_t step = 0;
  std::vector<DTensor> weights;  ///< those of the model, in its order
  std::vector<DTensor> states;
};

/// Maps a batch of all_x() to the input of the last Dense.
using Forward = std::function<DTensor(Hand& hand, const DTensor& x)>;

struct Case {
  std::string name;
  std::function<std::vector<LayerHandle>()> layers;  ///< those before the last Dense
  Forward forward;
  bool is_replayed = true;
  double metric = 0;  ///< the value of "watched/mean" in each epoch
};

// Layers by hand.

/// The next states of a cell from a step (batch, features), its states and its weights.
using Cell = std::function<std::vector<DTensor>(
    const DTensor& x, const std::vector<DTensor>& states, const DTensor* weights)>;

/// Returns equal columns of (batch, n · units).
DTensor gate(const DTensor& x, int64_t i) { return ops::slice(x, 1, i * units, units); }

std::vector<DTensor> simple_rnn(const DTensor& x, const std::vector<DTensor>& h, const DTensor* w) {
  return {ops::tanh(ops::matmul(x, w[0]) + ops::matmul(h[0], w[1]) + w[2])};
}

std::vector<DTensor> lstm(const DTensor& x, const std::vector<DTensor>& h, const DTensor* w) {
  const DTensor z = ops::matmul(x, w[0]) + ops::matmul(h[0], w[1]) + w[2];
  const DTensor carry =
      ops::sigmoid(gate(z, 1)) * h[1] + ops::sigmoid(gate(z, 0)) * ops::tanh(gate(z, 2));
  return {ops::sigmoid(gate(z, 3)) * ops::tanh(carry), carry};
}

std::vector<DTensor> gru(const DTensor& x, const std::vector<DTensor>& h, const DTensor* w) {
  const DTensor of_x = ops::matmul(x, w[0]) + ops::slice(w[2], 0, 0, 1);
  const DTensor of_h = ops::matmul(h[0], w[1]) + ops::slice(w[2], 0, 1, 1);
  const DTensor z = ops::sigmoid(gate(of_x, 0) + gate(of_h, 0));
  const DTensor r = ops::sigmoid(gate(of_x, 1) + gate(of_h, 1));
  const DTensor u = ops::tanh(gate(of_x, 2) + r * gate(of_h, 2));
  return {u + z * (h[0] - u)};
}

/// Returns the last output of a stateful layer with 3 weights from number `weight` on, and
/// `states` states after those that `hand` has got in this step.
DTensor unrolled(Hand& hand, std::vector<DTensor>& next, const DTensor& x, const Cell& cell,
                 size_t weight, size_t states, bool backwards) {
  std::vector<DTensor> now;
  for (size_t s = 0; s < states; ++s) {
    now.push_back(hand.states.empty() ? on_one(at::zeros({batch_rows, units}, at::kDouble))
                                      : hand.states[next.size() + s]);
  }
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = backwards ? steps - 1 - i : i;
    now = cell(ops::squeeze(ops::slice(x, 1, t, 1), {1}), now, &hand.weights[weight]);
  }
  for (const DTensor& state : now) next.push_back(constant(state));
  return now[0];
}

Forward stateful(const Cell& cell, size_t states, bool both_ways) {
  return [=](Hand& hand, const DTensor& x) {
    std::vector<DTensor> next;
    DTensor y = unrolled(hand, next, x, cell, 0, states, false);
    if (both_ways) y = ops::concat({y, unrolled(hand, next, x, cell, 3, states, true)}, -1);
    hand.states = next;
    return y;
  };
}

DTensor normalized_batch(Hand& hand, const DTensor& x) {
  std::vector<DTensor>& w = hand.weights;
  const DTensor flat = ops::flatten(x, 1), mean = ops::mean(flat, {0});
  const DTensor variance = ops::mean(ops::square(flat - mean), {0});
  w[2] = constant(w[2] * 0.8 + mean * 0.2);
  w[3] = constant(w[3] * 0.8 + variance * 0.2);
  return (flat - mean) / ops::sqrt(variance + 1e-3) * w[0] + w[1];
}

Forward dropped(std::optional<int64_t> seed) {
  return [=](Hand& hand, const DTensor& x) {
    RandomStream stream(global_seed(), hand.step);
    return ops::dropout(ops::flatten(x, 1), 0.4, stream.next_input("dropped", x.mesh(), seed));
  };
}

DTensor adapted(Hand&, const DTensor& x) {
  const at::Tensor rows = all_x().flatten(0, 1), mean = rows.mean(0);
  const at::Tensor deviation = (rows - mean).square().mean(0).sqrt();
  return ops::flatten((x - on_one(mean)) / on_one(deviation), 1);
}

DTensor faded(Hand& hand, const DTensor& x) {
  const DTensor hidden = ops::matmul(ops::flatten(x, 1), hand.weights[0]) + hand.weights[1];
  const DTensor y = hidden * hand.weights[2];
  hand.weights[2] = constant(hand.weights[2] * 0.9);
  return y;
}

// Layers of a user.

/// Multiplies by a number that each training step makes smaller, which it reads on the tape.
class Fading final : public Layer {
 public:
  Fading() : Layer({.dtype = dtype}) {}
  std::string class_name() const override { return "Fading"; }
  Shape output_shape(const Shapes& inputs) const override { return inputs[0]; }
  bool can_be_replayed() const override { return true; }

 protected:
  void make_weights(const Shapes&) override {
    scale_ = add_weight("scale", {}, "ones", {.trainable = false});
  }
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    const DTensor y = inputs[0] * read(scale_);
    if (context.training) scale_.assign(read(scale_) * 0.9);
    return y;
  }

 private:
  Variable scale_;
};

/// Reports the mean of its inputs' absolute values.
class Watching final : public Layer {
 public:
  Watching() : Layer({.name = "watched", .dtype = dtype}) {}
  std::string class_name() const override { return "Watching"; }
  Shape output_shape(const Shapes& inputs) const override { return inputs[0]; }
  bool can_be_replayed() const override { return true; }
  std::vector<MetricHandle> trackers() const override { return {mean_}; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    mean_.update(ops::abs(inputs[0]));
    return inputs[0];
  }

 private:
  Mean mean_{{.name = "mean"}};
};

// The cases.

LayerHandle flat() { return Flatten({.dtype = dtype}); }

template <class Made, class Options>
Case recurrent_case(const std::string& name, const Cell& cell, size_t states, bool both_ways) {
  const auto layers = [=]() -> std::vector<LayerHandle> {
    Options options;
    options.stateful = true;
    options.dtype = dtype;
    if (!both_ways) return {Made(units, options)};
    return {Bidirectional(Made(units, options), {.dtype = dtype})};
  };
  return {(both_ways ? "both ways " : "") + name, layers, stateful(cell, states, both_ways)};
}

/// Bins of an adapted Discretization, through an Embedding.
Case binned() {
  const Discretization bins({.num_bins = 4});
  const auto forward = [=](Hand& hand, const DTensor& x) {
    const at::Tensor edges = at::tensor(bins.bin_boundaries(), at::kDouble);
    const at::Tensor numbers = x.full().to(at::kFloat).to(at::kDouble).contiguous();
    const at::Tensor ids = at::searchsorted(edges, numbers, false, true);
    const at::Tensor one_hot = at::one_hot(ids.to(at::kLong), 4).to(at::kDouble);
    return ops::flatten(ops::matmul(on_one(one_hot), hand.weights[0]), 1);
  };
  const auto layers = [=]() -> std::vector<LayerHandle> {
    bins.adapt(all_x().to(at::kFloat));
    return {bins, Embedding(4, 2, {.dtype = dtype}), flat()};
  };
  return {"Discretization", layers, forward};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const bool both : {false, true}) {
    all.push_back(recurrent_case<SimpleRNN, SimpleRNNOptions>("SimpleRNN", simple_rnn, 1, both));
    all.push_back(recurrent_case<LSTM, LSTMOptions>("LSTM", lstm, 2, both));
    all.push_back(recurrent_case<GRU, GRUOptions>("GRU", gru, 1, both));
  }
  const auto loop = [](bool both_ways) -> std::vector<LayerHandle> {
    const RNN layer(GRUCell(units, {.dtype = dtype}), {.stateful = true, .dtype = dtype});
    if (!both_ways) return {layer};
    return {Bidirectional(layer, {.dtype = dtype})};
  };
  all.push_back({"RNN", [=] { return loop(false); }, stateful(gru, 1, false)});
  all.push_back({"both ways RNN", [=] { return loop(true); }, stateful(gru, 1, true)});
  const auto add = [&](const std::string& name, const Forward& forward, const auto& layer) {
    all.push_back({name, [=] { return std::vector<LayerHandle>{flat(), layer()}; }, forward});
  };
  const auto flattened = [](Hand&, const DTensor& x) { return ops::flatten(x, 1); };
  add("BatchNormalization", normalized_batch,
      [] { return BatchNormalization({.momentum = 0.8, .dtype = dtype}); });
  add("Dropout", dropped({}), [] { return Dropout(0.4, {.name = "dropped", .dtype = dtype}); });
  add("Dropout with a seed", dropped(5),
      [] { return Dropout(0.4, {.seed = 5, .name = "dropped", .dtype = dtype}); });
  add("a layer with a metric", flattened, [] { return make_layer<Watching>(); });
  all.back().metric = all_x().abs().mean().item<double>();
  const auto normalization = []() -> std::vector<LayerHandle> {
    const Normalization layer({.dtype = dtype});
    layer.adapt(all_x());
    return {layer, flat()};
  };
  all.push_back({"Normalization", normalization, adapted});
  all.push_back(binned());
  const auto fading = []() -> std::vector<LayerHandle> {
    return {flat(), Dense(3, {.dtype = dtype}), make_layer<Fading>()};
  };
  all.push_back({"a layer that assigns what it has read", fading, faded, false});
  return all;
}

// Training.

/// The results of training.
struct Outcome {
  std::vector<double> losses;
  std::vector<at::Tensor> weights, states;
  std::vector<double> metric;  ///< by epoch
};

Sequential model_of(const Case& each) {
  std::vector<LayerHandle> layers = each.layers();
  layers.push_back(Dense(1, {.name = "out", .dtype = dtype}));
  return Sequential(layers);
}

Outcome by_hand(const Case& each) {
  const Sequential model = model_of(each);
  model.build({batch_rows, steps, features});
  Hand hand;
  Outcome outcome;
  std::vector<size_t> trained;
  for (const Variable& weight : model.model().weights()) {
    if (weight.trainable()) trained.push_back(hand.weights.size());
    hand.weights.push_back(constant(weight.value()));
  }
  for (; hand.step < epochs * batches; ++hand.step) {
    const int64_t first = hand.step % batches * batch_rows;
    const auto rows = [&](const at::Tensor& all) {
      return on_one(all.narrow(0, first, batch_rows).contiguous());
    };
    GradientTape tape;
    std::vector<DTensor> sources;
    for (const size_t w : trained) {
      tape.watch(hand.weights[w]);
      sources.push_back(hand.weights[w]);
    }
    const DTensor y = each.forward(hand, rows(all_x()));
    const size_t last = hand.weights.size() - 2;
    const DTensor guess = ops::matmul(y, hand.weights[last]) + hand.weights[last + 1];
    const DTensor loss = ops::mean(ops::square(guess - rows(all_y())));
    outcome.losses.push_back(loss.full().item<double>());
    const std::vector<DTensor> gradients = tape.gradient(loss, sources);
    for (size_t i = 0; i < trained.size(); ++i) {
      hand.weights[trained[i]] = constant(sources[i] - gradients[i] * 0.1);
    }
  }
  for (const DTensor& weight : hand.weights) outcome.weights.push_back(weight.full().clone());
  for (const DTensor& state : hand.states) outcome.states.push_back(state.full().clone());
  if (each.metric != 0) outcome.metric.assign(epochs, each.metric);
  return outcome;
}

Outcome fitted(const Case& each, const Mesh& mesh, bool eager) {
  const Sequential model = model_of(each);
  model.compile(
      {.optimizer = SGD(0.1), .loss = "mse", .run_eagerly = eager, .layouts = LayoutMap(mesh)});
  const TensorDataset data(Examples{.x = {all_x()}, .y = {all_y()}});
  const History history =
      model.fit(data, {.batch_size = batch_rows, .epochs = epochs, .verbose = 0, .shuffle = false});
  const bool replays = !eager && each.is_replayed;
  CAPTURE(model.step_records().why);
  CHECK(model.step_records().replayed == (replays ? epochs * batches - 2 : 0));
  Outcome outcome{history.steps, test::full_weights(model), {}, {}};
  for (const auto& [name, state] : layer_states(model.model())) {
    outcome.states.push_back(state.value().full().clone());
  }
  if (each.metric != 0) outcome.metric = history.at("watched/mean");
  return outcome;
}

void check_equal(const Outcome& actual, const Outcome& expected) {
  const auto tensor = [](const std::vector<double>& list) { return at::tensor(list, at::kDouble); };
  CHECK(difference(tensor(actual.losses), tensor(expected.losses), 1e-10, 1e-12) == "");
  CHECK(difference(tensor(actual.metric), tensor(expected.metric), 1e-10) == "");
  REQUIRE(actual.weights.size() == expected.weights.size());
  for (size_t w = 0; w < actual.weights.size(); ++w) {
    CAPTURE(w);
    CHECK(difference(actual.weights[w], expected.weights[w], 1e-9, 1e-11) == "");
  }
  REQUIRE(actual.states.size() == expected.states.size());
  for (size_t s = 0; s < actual.states.size(); ++s) {
    CAPTURE(s);
    CHECK(difference(actual.states[s], expected.states[s], 1e-9, 1e-11) == "");
  }
}

}  // namespace

TEST_CASE("fit of layers that keep state equals steps by hand, replayed or not, on any mesh") {
  for (const Case& each : cases()) {
    CAPTURE(each.name);
    const Outcome expected = by_hand(each);
    for (const MeshDims& dims :
         std::vector<MeshDims>{{{"batch", 1}}, {{"batch", 3}}, {{"batch", 2}, {"model", 2}}}) {
      int64_t devices = 1;
      for (const auto& [name, size] : dims) devices *= size;
      const Mesh mesh = create_mesh(dims, virtual_cpus(devices));
      for (const bool eager : {false, true}) {
        CAPTURE(mesh.describe(), eager);
        check_equal(fitted(each, mesh, eager), expected);
      }
    }
  }
}

TEST_CASE("after reset_state, replayed steps start from zeros, with batches of another size too") {
  const auto losses = [](bool eager) {
    const LSTM memory(units, {.stateful = true, .dtype = dtype});
    const Sequential model({memory, Dense(1, {.dtype = dtype})});
    model.compile({.optimizer = SGD(0.1), .loss = "mse", .run_eagerly = eager});
    const TensorDataset data(Examples{.x = {all_x()}, .y = {all_y()}});
    std::vector<double> all;
    for (const int64_t rows : {4, 4, 3, 4}) {
      const History history =
          model.fit(data, {.batch_size = rows, .epochs = 2, .verbose = 0, .shuffle = false});
      all.insert(all.end(), history.steps.begin(), history.steps.end());
      memory.reset_state();
      for (const auto& [name, state] : layer_states(model.model())) {
        CHECK(state.value().full().abs().max().item<double>() == 0);
      }
    }
    CHECK((model.step_records().replayed > 0) == !eager);
    return at::tensor(all, at::kDouble);
  };
  CHECK(difference(losses(false), losses(true), 1e-12) == "");
}

}  // namespace layers_with_state_test
