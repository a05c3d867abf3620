// LSTM, GRU and SimpleRNN with all steps in one operation, against the loop over steps.
#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/model/sequential.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/ops/internal/recurrent.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/layers.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace recurrence_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

constexpr int64_t rows = 4, steps = 5, features = 3, units = 6;

struct Variant {
  bool sequences = false, backwards = false, masked = false, states = false, zeros = false;
};

template <class Options>
Options options_of(const Variant& v, const std::string& dtype) {
  Options o;
  o.return_sequences = v.sequences;
  o.return_state = true;
  o.go_backwards = v.backwards;
  o.zero_output_for_mask = v.zeros;
  o.bias_initializer = RandomNormal({.seed = 5});
  o.name = "rnn";
  o.dtype = dtype;
  return o;
}

RecurrentHandle layer_of(RecurrentKind kind, const Variant& v, const std::string& dtype) {
  if (kind == RecurrentKind::lstm) return LSTM(units, options_of<LSTMOptions>(v, dtype));
  if (kind == RecurrentKind::gru) return GRU(units, options_of<GRUOptions>(v, dtype));
  return SimpleRNN(units, options_of<SimpleRNNOptions>(v, dtype));
}

bool ran(const Profile& profile, const std::string& op) {
  const std::vector<Profile::Row> all = profile.rows();
  return std::any_of(all.begin(), all.end(), [&](const auto& row) { return row.name == op; });
}

/// The outputs, then the gradients of a weighted sum of them by inputs and weights. Under two tapes
/// the layer runs its loop.
std::vector<at::Tensor> results(const RecurrentHandle& layer, std::vector<DTensor> inputs,
                                const DTensor& mask, bool loop) {
  Profile profile;
  std::optional<GradientTape> second;
  if (loop) second.emplace();
  GradientTape tape;
  for (const DTensor& input : inputs) tape.watch(input);
  std::vector<DTensor> sources = inputs;
  if (mask.defined()) inputs[0] = inputs[0].with_mask(mask);
  const std::vector<DTensor> outputs = layer.outputs(inputs);
  DTensor loss;
  std::vector<at::Tensor> all;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const at::Tensor factors = random_values({outputs[o].shape()}, 70 + o).to(outputs[o].dtype());
    const DTensor part =
        ops::sum(outputs[o] * pack(factors, Layout::replicated(outputs[o].mesh(), factors.dim())));
    loss = loss.defined() ? loss + part : part;
    all.push_back(outputs[o].full());
  }
  for (const Variable& weight : layer->weights()) sources.push_back(weight.value());
  for (const DTensor& gradient : tape.gradient(loss, sources)) all.push_back(gradient.full());
  profile.stop();
  CHECK(ran(profile, "recurrence") == !loop);
  CHECK(ran(profile, "recurrence_grad") == !loop);
  return all;
}

}  // namespace

TEST_CASE("all steps of a recurrent layer in one operation equal the loop") {
  const Variant variants[] = {{},
                              {true},
                              {true, true},
                              {false, true},
                              {true, false, true},
                              {false, true, true},
                              {true, false, false, true},
                              {true, false, true, false, true},
                              {true, true, true, false, true}};
  for (const RecurrentKind kind :
       {RecurrentKind::simple_rnn, RecurrentKind::lstm, RecurrentKind::gru}) {
    for (const Variant& v : variants) {
      for (const std::string dtype : {"float64", "float32"}) {
        INFO(int(kind) << " sequences " << v.sequences << " backwards " << v.backwards << " masked "
                       << v.masked << " states " << v.states << " " << dtype);
        const at::ScalarType type = dtype == "float64" ? at::kDouble : at::kFloat;
        std::vector<at::Tensor> in = {random_values({{rows, steps, features}}, 1).to(type) * 3};
        const size_t states = kind == RecurrentKind::lstm ? 2 : 1;
        for (size_t s = 0; v.states && s < states; ++s) {
          in.push_back(random_values({{rows, units}}, 2 + s).to(type));
        }
        std::vector<at::Tensor> expected;
        for (const MeshDims& dims : {MeshDims{{"batch", 1}}, {{"batch", 4}}, {{"batch", 3}}}) {
          const DefaultMeshScope scope(create_mesh(dims, virtual_cpus(dims[0].second)));
          const RecurrentHandle layer = layer_of(kind, v, dtype);
          std::vector<DTensor> inputs;
          for (const at::Tensor& each : in) {
            LayoutSpec spec(size_t(each.dim()), unsharded);
            spec[0] = "batch";
            inputs.push_back(pack(each, Layout(spec, default_mesh())));
          }
          DTensor mask;
          if (v.masked) {
            const at::Tensor kept = random_values({{rows, steps}}, 9).gt(-0.3);
            mask = pack(kept, Layout({"batch", unsharded}, default_mesh()));
          }
          layer.outputs(inputs);
          if (expected.empty()) {
            expected = results(layer, inputs, mask, true);
          } else {
            CHECK(difference(results(layer, inputs, mask, true)[0], expected[0], 1e-5, 1e-6) == "");
          }
          const std::vector<at::Tensor> actual = results(layer, inputs, mask, false);
          REQUIRE(actual.size() == expected.size());
          const double tolerance = type == at::kDouble ? 1e-12 : 1e-5;
          for (size_t i = 0; i < actual.size(); ++i) {
            INFO("result " << i);
            CHECK(difference(actual[i], expected[i], tolerance, tolerance) == "");
          }
        }
      }
    }
  }
}

TEST_CASE("predictions of an LSTM of many rows are one call of oneDNN") {
  if (!at::hasMKLDNN()) return;
  constexpr int64_t many = 40;
  for (const MeshDims& dims : {MeshDims{{"batch", 1}}, {{"batch", 4}}}) {
    const DefaultMeshScope scope(create_mesh(dims, virtual_cpus(dims[0].second)));
    const auto rows_of = [](const at::Tensor& tensor) {
      LayoutSpec spec(size_t(tensor.dim()), unsharded);
      spec[0] = "batch";
      return pack(tensor, Layout(spec, default_mesh()));
    };
    for (const bool backwards : {false, true}) {
      for (const bool biased : {false, true}) {
        LSTMOptions options = options_of<LSTMOptions>({true, backwards}, "float32");
        options.use_bias = biased;
        const LSTM layer(units, options);
        const at::Tensor x = random_values({{many, steps, features}}, 1).to(at::kFloat) * 3;
        const at::Tensor state = random_values({{many, units}}, 2).to(at::kFloat);
        const std::vector<DTensor> in = {rows_of(x), rows_of(state), rows_of(-state)};
        layer.outputs(in);
        const auto outputs = [&](bool taped) {
          Profile profile;
          std::optional<GradientTape> tape;
          if (taped) tape.emplace();
          const std::vector<DTensor> all = layer.outputs(in);
          profile.stop();
          CHECK(ran(profile, "lstm_layer") == !taped);
          CHECK(ran(profile, "recurrence") == taped);
          return all;
        };
        const std::vector<DTensor> fast = outputs(false), slow = outputs(true);
        for (size_t o = 0; o < fast.size(); ++o) {
          CHECK(difference(fast[o].full(), slow[o].full(), 1e-5, 1e-6) == "");
        }
      }
    }
  }
}

TEST_CASE("all steps in float16 and bfloat16 equal the loop in float32, rounded") {
  const std::vector<at::Tensor> x = {random_values({{rows, steps, features}}, 1)};
  for (const RecurrentKind kind :
       {RecurrentKind::simple_rnn, RecurrentKind::lstm, RecurrentKind::gru}) {
    for (const auto& [dtype, type, unit] :
         {std::tuple("bfloat16", at::kBFloat16, 0.0078), std::tuple("float16", at::kHalf, 0.001)}) {
      INFO(int(kind) << " " << dtype);
      const RecurrentHandle narrow = layer_of(kind, {true}, dtype);
      const RecurrentHandle wide = layer_of(kind, {true}, "float32");
      const at::Tensor rounded = x[0].to(type);
      narrow.outputs({pack(rounded)});
      wide.outputs({pack(rounded.to(at::kFloat))});
      for (size_t i = 0; i < narrow->weights().size(); ++i) {
        Variable weight = wide->weights()[i];
        weight.assign(pack(narrow->weights()[i].value().full().to(at::kFloat)));
      }
      const auto expected = results(wide, {pack(rounded.to(at::kFloat))}, {}, true);
      const auto actual = results(narrow, {pack(rounded)}, {}, false);
      REQUIRE(actual.size() == expected.size());
      for (size_t i = 0; i < actual.size(); ++i) {
        INFO("result " << i);
        CHECK(actual[i].scalar_type() == type);
        const double largest = expected[i].abs().max().item<double>();
        CHECK(difference(actual[i].to(at::kFloat), expected[i], 2 * unit, 2 * unit * largest) ==
              "");
      }
    }
  }
}

TEST_CASE("layers that one operation does not compute run the loop") {
  const DTensor x = pack(at::rand({rows, steps, features}));
  const auto fused = [&](const RecurrentHandle& layer, const DTensor& in) {
    layer(in);
    Profile profile;
    layer(in, {.training = true});
    profile.stop();
    return ran(profile, "recurrence");
  };
  CHECK(fused(LSTM(units), x));
  CHECK(fused(GRU(units, {.dropout = 0.3}), x));
  CHECK_FALSE(fused(LSTM(units, {.activation = "relu"}), x));
  CHECK_FALSE(fused(LSTM(units, {.recurrent_activation = "hard_sigmoid"}), x));
  CHECK_FALSE(fused(GRU(units, {.reset_after = false}), x));
  CHECK_FALSE(fused(LSTM(units, {.recurrent_dropout = 0.2}), x));
  for (const char* dtype : {"mixed_bfloat16", "mixed_float16"}) {
    CHECK(fused(LSTM(units, {.dtype = dtype}), x));
  }
  const DTensor mask = pack(at::ones({rows, steps}, at::kBool));
  CHECK(fused(LSTM(units, {.return_sequences = true}), x.with_mask(mask)));
  CHECK_FALSE(fused(LSTM(units, {.stateful = true}), x.with_mask(mask)));
}

TEST_CASE("recurrent layers whose units are sharded are one operation on gathered kernels") {
  const at::Tensor x = random_values({{rows, steps, features}}, 1);
  const at::Tensor y = random_values({{rows, units}}, 2);
  for (const RecurrentKind kind :
       {RecurrentKind::simple_rnn, RecurrentKind::lstm, RecurrentKind::gru}) {
    std::vector<at::Tensor> expected;
    for (const MeshDims& dims : {MeshDims{{"batch", 1}, {"model", 1}},
                                 {{"batch", 1}, {"model", 2}},
                                 {{"batch", 2}, {"model", 2}},
                                 {{"batch", 1}, {"model", 3}}}) {
      INFO(int(kind) << " on batch=" << dims[0].second << ", model=" << dims[1].second);
      LayoutMap layouts(create_mesh(dims, virtual_cpus(dims[0].second * dims[1].second)));
      layouts.add({"rnn.*/(recurrent_)?kernel", LayoutSpec{unsharded, "model"}});
      LSTMOptions lstm{.dropout = 0.3, .seed = 4, .dtype = "float64"};
      lstm.name = "rnn";
      GRUOptions gru{.dropout = 0.3, .seed = 4, .dtype = "float64"};
      gru.name = "rnn";
      SimpleRNNOptions simple{.dropout = 0.3, .seed = 4, .dtype = "float64"};
      simple.name = "rnn";
      const RecurrentHandle layer = kind == RecurrentKind::lstm ? RecurrentHandle(LSTM(units, lstm))
                                    : kind == RecurrentKind::gru ? RecurrentHandle(GRU(units, gru))
                                                                 : SimpleRNN(units, simple);
      set_random_seed(7);
      Sequential model({Input({steps, features}), layer});
      model.compile({.optimizer = Adam(0.1), .loss = "mse", .layouts = layouts});
      Profile profile;
      for (int i = 0; i < 3; ++i) model.train_on_batch(x, y);
      profile.stop();
      CHECK(ran(profile, "recurrence"));
      CHECK(ran(profile, "recurrence_grad"));
      CHECK(layer->weights()[0].layout().used_dims() != 0);
      const std::vector<at::Tensor> weights = model.get_weights();
      if (expected.empty()) expected = weights;
      for (size_t i = 0; i < weights.size(); ++i) {
        CHECK(difference(weights[i], expected[i], 1e-11, 1e-11) == "");
      }
    }
  }
}

namespace {

/// One step of one unit, whose kernel is 0.
RecurrentStates one_step(RecurrentKind kind, const at::Tensor& x) {
  Recurrence in;
  in.kind = kind;
  in.x = x;
  in.kernel = at::zeros({1, x.size(2)});
  if (kind == RecurrentKind::gru) in.bias = at::zeros({x.size(2)});
  in.h = at::zeros({x.size(0), 1});
  return run_recurrence(in);
}

}  // namespace

TEST_CASE("sigmoid and tanh of recurrences are those of ATen over their whole range") {
  // The state of a SimpleRNN is tanh(x), the update gate of a GRU sigmoid(x).
  const at::Tensor special =
      at::tensor({0.0f, -0.0f, 1e-30f, 0.6249f, 0.625f, 20.0f, -100.0f, 1e30f});
  const at::Tensor x = at::cat({special, at::linspace(-100, 100, 4001), at::linspace(-1, 1, 4001)});
  const int64_t n = x.numel();
  const at::Tensor tanh = one_step(RecurrentKind::simple_rnn, x.view({n, 1, 1})).h.flatten();
  CHECK(difference(tanh.to(at::kDouble), at::tanh(x.to(at::kDouble)), 3e-7, 0) == "");
  const at::Tensor gates = at::cat({x.view({n, 1, 1}), at::zeros({n, 1, 2})}, 2);
  const at::Tensor sigmoid =
      one_step(RecurrentKind::gru, gates).gates.view({n, 4}).select(1, 0).to(at::kDouble);
  // Below e^-87, results are that instead of even smaller ones.
  CHECK(difference(sigmoid, at::sigmoid(x.to(at::kDouble)), 3e-7, 2e-38) == "");
  for (const float extreme : {NAN, INFINITY, -INFINITY}) {
    const at::Tensor input = at::full({1, 1, 1}, extreme);
    const at::Tensor state = one_step(RecurrentKind::simple_rnn, input).h.flatten();
    CHECK(difference(state, at::tanh(input.flatten()), 1e-6) == "");
  }
}

}  // namespace recurrence_test
