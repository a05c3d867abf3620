// Weights that Keras 1 stored in other arrays than its successors.
#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"
#include "tests/support/keras_file.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace keras_1_weights_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

constexpr int64_t steps = 5, features = 2, units = 3;

at::Tensor numbers(const Shape& shape, int64_t seed) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  const at::Tensor list = (at::arange(count, at::kLong) * 37 + seed * 11).remainder(101);
  return (list.to(at::kDouble) / 50 - 1).to(at::kFloat).reshape(shape);
}

/// The hard_sigmoid of Keras 1.
at::Tensor gate(const at::Tensor& x) { return (x * 0.2 + 0.5).clamp(0, 1); }

/// Arrays by Keras 1's names, W, U and b of each gate, in the order in which Keras 1 stores them.
NamedData gates_of(const std::string& layer, const std::vector<std::string>& gates, int64_t seed) {
  NamedData data;
  for (const std::string& name : gates) {
    const std::string suffix = name.empty() ? "" : "_" + name;
    data.emplace_back(layer + "_W" + suffix, numbers({features, units}, seed++));
    data.emplace_back(layer + "_U" + suffix, numbers({units, units}, seed++));
    data.emplace_back(layer + "_b" + suffix, numbers({units}, seed++));
  }
  return data;
}

/// Computes x W + b + h U of a gate.
at::Tensor sum_of(const NamedData& data, size_t at, const at::Tensor& x, const at::Tensor& h) {
  const auto array = [&](size_t i) { return data[3 * at + i].second.to(at::kDouble); };
  return x.matmul(array(0)) + h.matmul(array(1)) + array(2);
}

/// Returns the state after the last step of Keras 1's recurrent layers; the gates are in the order
/// of `data`: i, c, f, o or z, r, h.
at::Tensor last_state(const NamedData& data, const at::Tensor& inputs, bool backwards = false) {
  at::Tensor h = at::zeros({inputs.size(0), units}, at::kDouble), c = h;
  for (int64_t t = 0; t < steps; ++t) {
    const at::Tensor x = inputs.select(1, backwards ? steps - 1 - t : t).to(at::kDouble);
    if (data.size() == 3) {
      h = sum_of(data, 0, x, h).tanh();
    } else if (data.size() == 9) {
      const at::Tensor z = gate(sum_of(data, 0, x, h)), r = gate(sum_of(data, 1, x, h));
      h = z * h + (1 - z) * sum_of(data, 2, x, r * h).tanh();
    } else {
      c = gate(sum_of(data, 2, x, h)) * c +
          gate(sum_of(data, 0, x, h)) * sum_of(data, 1, x, h).tanh();
      h = gate(sum_of(data, 3, x, h)) * c.tanh();
    }
  }
  return h;
}

Json recurrent_layer(const std::string& kind, const std::string& name) {
  Json config = {{"name", name},
                 {"trainable", true},
                 {"output_dim", units},
                 {"input_dim", features},
                 {"input_length", nullptr},
                 {"init", "glorot_uniform"},
                 {"inner_init", "orthogonal"},
                 {"activation", "tanh"},
                 {"return_sequences", false},
                 {"go_backwards", false},
                 {"stateful", false},
                 {"unroll", false},
                 {"consume_less", "cpu"},
                 {"W_regularizer", nullptr},
                 {"U_regularizer", nullptr},
                 {"b_regularizer", nullptr},
                 {"dropout_W", 0.0},
                 {"dropout_U", 0.0}};
  if (kind != "SimpleRNN") config["inner_activation"] = "hard_sigmoid";
  if (kind == "LSTM") config["forget_bias_init"] = "one";
  return {{"class_name", kind}, {"config", config}};
}

Json chain_of(Json layer) {
  layer["config"]["batch_input_shape"] = {nullptr, steps, features};
  layer["config"]["input_dtype"] = "float32";
  return {{"class_name", "Sequential"}, {"config", Json::array({layer})}};
}

/// Checks a file's model on meshes where the gates are split among the devices.
void check_output(const std::string& path, const at::Tensor& x, const at::Tensor& expected) {
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{1}, {2}, {3}}) {
    CAPTURE(sizes);
    const Mesh mesh = virtual_mesh(sizes);
    LayoutMap layouts(mesh);
    layouts[".*_cell/kernel"] = {unsharded, "x"};
    layouts[".*/recurrent_kernel"] = {"x", unsharded};
    const bool is_recurrent = expected.dim() == 2;
    const ModelHandle model =
        load_model(path, {.layouts = is_recurrent ? layouts : LayoutMap(mesh)});
    const DTensor input = pack(x, Layout::replicated(mesh, 3));
    const at::Tensor actual = model->outputs({input})[0].full();
    CHECK(difference(actual, expected.to(at::kFloat), 0, 1e-6) == "");
  }
}

}  // namespace

TEST_CASE("recurrent layers of Keras 1 are read, whose gates are arrays of their own") {
  const TempFolder folder;
  const at::Tensor x = numbers({4, steps, features}, 1);
  const std::pair<std::string, std::vector<std::string>> kinds[] = {
      {"LSTM", {"i", "c", "f", "o"}}, {"GRU", {"z", "r", "h"}}, {"SimpleRNN", {""}}};
  for (const auto& kind : kinds) {
    CAPTURE(kind.first);
    const NamedData data = gates_of("layer_1", kind.second, 3);
    write_legacy_file(folder / "m.h5",
                      {.version = "1.2.2",
                       .layers = {{"layer_1", data}},
                       .config = chain_of(recurrent_layer(kind.first, "layer_1"))});
    check_output(folder / "m.h5", x, last_state(data, x));
  }
}

TEST_CASE("a Bidirectional of Keras 1 has the gates of both directions") {
  const TempFolder folder;
  const at::Tensor x = numbers({4, steps, features}, 1);
  const std::vector<std::string> gates = {"i", "c", "f", "o"};
  const NamedData forward = gates_of("forward_lstm_1", gates, 3);
  const NamedData backward = gates_of("backward_lstm_1", gates, 20);
  NamedData both = forward;
  both.insert(both.end(), backward.begin(), backward.end());
  const Json layer = {{"class_name", "Bidirectional"},
                      {"config",
                       {{"name", "bidirectional_1"},
                        {"trainable", true},
                        {"merge_mode", "concat"},
                        {"layer", recurrent_layer("LSTM", "lstm_1")}}}};
  write_legacy_file(
      folder / "m.h5",
      {.version = "1.2.2", .layers = {{"bidirectional_1", both}}, .config = chain_of(layer)});
  check_output(folder / "m.h5", x,
               at::cat({last_state(forward, x), last_state(backward, x, true)}, 1));
}

TEST_CASE("kernels of Keras 1's 1D convolutions have an axis of extent 1") {
  const TempFolder folder;
  const at::Tensor x = numbers({2, steps, features}, 1);
  const at::Tensor kernel = numbers({3, 1, features, 4}, 2), bias = numbers({4}, 3);
  const Json layer = {{"class_name", "Convolution1D"},
                      {"config",
                       {{"name", "conv_1"},
                        {"trainable", true},
                        {"nb_filter", 4},
                        {"filter_length", 3},
                        {"init", "glorot_uniform"},
                        {"activation", "linear"},
                        {"border_mode", "valid"},
                        {"subsample_length", 1},
                        {"W_regularizer", nullptr},
                        {"bias", true},
                        {"input_dim", features},
                        {"input_length", nullptr}}}};
  write_legacy_file(folder / "m.h5",
                    {.version = "1.2.2",
                     .layers = {{"conv_1", {{"conv_1_W", kernel}, {"conv_1_b", bias}}}},
                     .config = chain_of(layer)});
  at::Tensor expected = at::zeros({2, steps - 2, 4});
  for (int64_t t = 0; t < 3; ++t) {
    expected += x.narrow(1, t, steps - 2).matmul(kernel[t][0]);
  }
  check_output(folder / "m.h5", x, expected + bias);
}

TEST_CASE("gates of another extent are refused by their shapes") {
  const TempFolder folder;
  NamedData data = gates_of("lstm_1", {"i", "c", "f", "o"}, 3);
  data[6].second = numbers({features, units + 1}, 4);
  write_legacy_file(folder / "m.h5", {.version = "1.2.2",
                                      .layers = {{"lstm_1", data}},
                                      .config = chain_of(recurrent_layer("LSTM", "lstm_1"))});
  CHECK_THAT(error_line([&] { load_model(folder / "m.h5"); }),
             Contains("of shape (2, 12)") && Contains("Received: 4 gates, the first of (2, 3)"));
  data.pop_back();
  write_legacy_file(folder / "m.h5", {.version = "1.2.2",
                                      .layers = {{"lstm_1", data}},
                                      .config = chain_of(recurrent_layer("LSTM", "lstm_1"))});
  CHECK_THAT(error_line([&] { load_model(folder / "m.h5"); }),
             Contains("the 3 weights of \"lstm_1\". Received: 11"));
}

}  // namespace keras_1_weights_test
