// Loading of weights that other programs wrote, with names, layouts and dtypes of their own.
#include <tessera/framework/io/weights_file.hpp>

#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/rectangle_runs.hpp>
#include <tessera/framework/io/format/safetensors.hpp>
#include <tessera/framework/io/internal/torch_layout.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"
#include "tests/support/thread_communicator.hpp"
#include "tests/support/warnings.hpp"

namespace torch_weights_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

using State = std::map<std::string, at::Tensor>;

/// Returns integers of at most 8 bits, which all floating dtypes hold exactly.
at::Tensor integers(const Shape& shape, int64_t seed, at::ScalarType dtype = at::kBFloat16) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return (at::arange(count, at::kLong) * 37 + seed).remainder(23).sub(11).to(dtype).reshape(shape);
}

/// Returns the state_dict() of a model of PyTorch: convolutions as (out, in, height, width).
State torch_state() {
  return {{"net.conv1.weight", integers({4, 3, 3, 3}, 1)},
          {"net.conv1.bias", integers({4}, 2)},
          {"net.conv2.weight", integers({8, 1, 3, 3}, 3, at::kHalf)},
          {"net.conv2.bias", integers({8}, 4, at::kDouble)},
          {"net.bn.weight", integers({8}, 5, at::kFloat)},
          {"net.bn.bias", integers({8}, 6)},
          {"net.bn.running_mean", integers({8}, 7)},
          {"net.bn.running_var", integers({8}, 8).abs() + 1},
          {"net.bn.num_batches_tracked", at::tensor(7, at::kLong)},
          {"head.weight", integers({6, 8}, 9)},
          {"head.bias", integers({6}, 10)}};
}

std::string dtype_in_file(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return "F32";
    case at::kDouble:
      return "F64";
    case at::kHalf:
      return "F16";
    case at::kBFloat16:
      return "BF16";
    default:
      return "I64";
  }
}

void write_state(const std::string& path, const State& state) {
  std::vector<SafeTensor> tensors;
  for (const auto& [name, tensor] : state) {
    const auto* bytes = static_cast<const std::byte*>(tensor.const_data_ptr());
    tensors.push_back({name,
                       dtype_in_file(tensor),
                       tensor.sizes().vec(),
                       {bytes, static_cast<size_t>(tensor.nbytes())}});
  }
  write_safetensors(path, tensors, {{"format", "pt"}});
}

/// Writes a state in two files and their index, as Hugging Face's programs do.
std::string write_shards(const test::TempFolder& folder, const State& state) {
  State halves[2];
  Json map = Json::object();
  for (const auto& [name, tensor] : state) {
    const size_t half = map.size() % 2;
    halves[half].emplace(name, tensor);
    map[name] = half == 0 ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors";
  }
  write_state(folder / "model-00001-of-00002.safetensors", halves[0]);
  write_state(folder / "model-00002-of-00002.safetensors", halves[1]);
  std::string index = folder / "model.safetensors.index.json";
  test::write_file(index, Json{{"metadata", {{"total_size", 1}}}, {"weight_map", map}}.dump());
  return index;
}

const LoadWeightsOptions& torch_options() {
  static const LoadWeightsOptions options{
      .rename = {{"^net\\.conv1\\.", "conv/"},
                 {"^net\\.conv2\\.", "deep/"},
                 {"^net\\.bn\\.weight$", "norm/gamma"},
                 {"^net\\.bn\\.bias$", "norm/beta"},
                 {"^net\\.bn\\.running_mean$", "norm/moving_mean"},
                 {"^net\\.bn\\.running_var$", "norm/moving_variance"},
                 {"^net\\.bn\\.num_batches_tracked$", ""},
                 {"^(head)\\.", "\\1/"},
                 {"weight$", "kernel"}},
      .transpose = {"kernel$"},
      .cast = true};
  return options;
}

ModelHandle small_network(const LayoutMap& layouts = {}) {
  const Sequential model({Input({7, 7, 3}), Conv2D(4, 3, {.name = "conv"}),
                          DepthwiseConv2D(3, {.depth_multiplier = 2, .name = "deep"}),
                          BatchNormalization({.name = "norm"}), GlobalAveragePooling2D(),
                          Dense(6, {.name = "head"})});
  if (layouts.defined()) model.compile({.layouts = layouts});
  return model;
}

/// Returns the weights that a state stands for, element by element, by their paths.
State expected_weights() {
  const State state = torch_state();
  const auto at_float = [&](const char* name) { return state.at(name).to(at::kFloat); };
  const at::Tensor conv = at_float("net.conv1.weight"), deep = at_float("net.conv2.weight");
  const at::Tensor head = at_float("head.weight");
  at::Tensor conv_kernel = at::empty({3, 3, 3, 4}), deep_kernel = at::empty({3, 3, 4, 2});
  for (int64_t h = 0; h < 3; ++h) {
    for (int64_t w = 0; w < 3; ++w) {
      for (int64_t out = 0; out < 4; ++out) {
        for (int64_t in = 0; in < 3; ++in) conv_kernel[h][w][in][out] = conv[out][in][h][w];
      }
      for (int64_t out = 0; out < 8; ++out) {
        deep_kernel[h][w][out / 2][out % 2] = deep[out][0][h][w];
      }
    }
  }
  at::Tensor head_kernel = at::empty({8, 6});
  for (int64_t out = 0; out < 6; ++out) {
    for (int64_t in = 0; in < 8; ++in) head_kernel[in][out] = head[out][in];
  }
  return {{"conv/kernel", conv_kernel},
          {"conv/bias", at_float("net.conv1.bias")},
          {"deep/kernel", deep_kernel},
          {"deep/bias", at_float("net.conv2.bias")},
          {"norm/gamma", at_float("net.bn.weight")},
          {"norm/beta", at_float("net.bn.bias")},
          {"norm/moving_mean", at_float("net.bn.running_mean")},
          {"norm/moving_variance", at_float("net.bn.running_var")},
          {"head/kernel", head_kernel},
          {"head/bias", at_float("head.bias")}};
}

/// Returns the paths of weights that are not the expected ones.
std::string wrong_weights(const ModelHandle& model) {
  const State expected = expected_weights();
  std::string wrong;
  for (const Variable& weight : model.weights()) {
    if (!weight.value().full().equal(expected.at(weight.path()))) wrong += weight.path() + " ";
  }
  return wrong;
}

/// Returns a map that shards every kernel over "model", along another axis for each.
LayoutMap sharded(const Mesh& mesh) {
  LayoutMap layouts(mesh);
  layouts["conv/kernel"] = {unsharded, unsharded, "model", unsharded};
  layouts["deep/kernel"] = {unsharded, unsharded, "model", unsharded};
  layouts["head/kernel"] = {"model", unsharded};
  layouts["head/bias"] = {"model"};
  return layouts;
}

/// Computes the network with PyTorch's operations on PyTorch's weights.
at::Tensor torch_outputs(const at::Tensor& images) {
  State state = torch_state();
  for (auto& [name, tensor] : state) tensor = tensor.to(at::kDouble);
  at::Tensor x = images.to(at::kDouble).permute({0, 3, 1, 2});
  x = at::conv2d(x, state.at("net.conv1.weight"), state.at("net.conv1.bias"));
  x = at::conv2d(x, state.at("net.conv2.weight"), state.at("net.conv2.bias"), at::IntArrayRef{1, 1},
                 at::IntArrayRef{0, 0}, at::IntArrayRef{1, 1}, 4);
  x = at::batch_norm(x, state.at("net.bn.weight"), state.at("net.bn.bias"),
                     state.at("net.bn.running_mean"), state.at("net.bn.running_var"), false, 0,
                     1e-3, false);
  return at::linear(x.mean({2, 3}), state.at("head.weight"), state.at("head.bias"));
}

}  // namespace

TEST_CASE("weights with PyTorch's names, layouts and dtypes load exactly, from one file or two") {
  const test::TempFolder folder;
  write_state(folder / "model.safetensors", torch_state());
  const std::string index = write_shards(folder, torch_state());
  const at::Tensor images = integers({2, 7, 7, 3}, 11, at::kFloat) / 16;
  const at::Tensor expected = torch_outputs(images);
  for (const std::string& path : {std::string(folder / "model.safetensors"), index}) {
    CAPTURE(path);
    const ModelHandle model = small_network();
    model.load_weights(path, torch_options());
    CHECK(wrong_weights(model) == "");
    const at::Tensor actual = model.predict(TensorDataset(images, at::zeros({2})));
    CHECK((actual.to(at::kDouble) - expected).abs().max().item<double>() <
          1e-5 * expected.abs().max().item<double>());
    for (const MeshDims& dims : {MeshDims{{"batch", 1}, {"model", 2}}, MeshDims{{"model", 4}}}) {
      const ModelHandle split = small_network(sharded(create_mesh(dims)));
      split.load_weights(path, torch_options());
      CHECK(wrong_weights(split) == "");
    }
  }
}

TEST_CASE("two processes read another program's weights into their own shards") {
  const test::TempFolder folder;
  const std::string index = write_shards(folder, torch_state());
  const auto run = [&](int, const std::shared_ptr<Communicator>& communicator) {
    const ModelHandle model = small_network(sharded(test::rank_mesh({{"model", 2}}, communicator)));
    model.load_weights(index, torch_options());
    const std::string wrong = wrong_weights(model);
    test::expect(wrong.empty(), wrong);
  };
  CHECK_NOTHROW(test::run_ranks(2, run));
}

TEST_CASE("weights of another dtype are refused without cast, and kernels without transpose") {
  const test::TempFolder folder;
  const std::string path = folder / "model.safetensors";
  write_state(path, torch_state());
  const ModelHandle model = small_network();
  const std::vector<at::Tensor> before = model.get_weights();
  const auto error = [&](const LoadWeightsOptions& options) {
    return test::error_line([&] { model.load_weights(path, options); });
  };
  LoadWeightsOptions options = torch_options();
  options.cast = false;
  CHECK_THAT(error(options), Contains("tensor \"net.conv1.weight\" for \"conv/kernel\"") &&
                                 Contains("and BF16") && Contains("or pass cast"));
  options = torch_options();
  options.transpose = {};
  CHECK_THAT(error(options), Contains("has shape (3, 3, 3, 4) and dtype F32. Received: "
                                      "(4, 3, 3, 3) and BF16. To fix: pass transpose"));
  options = torch_options();
  options.rename.pop_back();
  CHECK_THAT(error(options),
             Contains("the file holds the weights \"conv/kernel\", \"deep/kernel\", "
                      "\"head/kernel\"") &&
                 Contains("3 names of no weight: \"net.conv1.weight\", \"net.conv2.weight\", "
                          "\"head.weight\""));
  options = torch_options();
  options.rename.emplace_back("nothing", "x");
  CHECK_THAT(error(options), Contains("load_weights, rename] an expression that matches a name"));
  options = torch_options();
  options.rename[0].second = "\\1";
  CHECK_THAT(error(options), Contains("load_weights, rename] a replacement that fits"));
  options = torch_options();
  options.rename.emplace_back("kernel|bias", "both");
  CHECK_THAT(
      error(options),
      Contains("] one tensor for \"head/both\". Received: \"head.bias\" and \"head.weight\""));
  options = torch_options();
  options.transpose = {"(kernel"};
  CHECK_THAT(error(options), Contains("load_weights, transpose] an RE2 expression"));
  options.transpose = {"kernell"};
  CHECK_THAT(error(options), Contains("load_weights, transpose] an expression that matches a "
                                      "weight's path. Received: \"kernell\""));
  for (size_t i = 0; i < before.size(); ++i) CHECK(model.get_weights()[i].equal(before[i]));
  model.save_weights(folder / "own.weights.h5");
  CHECK_THROWS_WITH(model.load_weights(folder / "own.weights.h5", torch_options()),
                    Contains("rename and transpose are for safetensors files"));
}

TEST_CASE("with by_name only the weights in the file are set, and other tensors are warned of") {
  const test::TempFolder folder;
  const std::string path = folder / "head.safetensors";
  write_state(path, {{"fc.weight", integers({6, 8}, 9)}, {"extra", integers({2}, 1)}});
  const ModelHandle model = small_network();
  const at::Tensor conv = model.get_weights()[0];
  const test::Warnings warnings;
  model.load_weights(path, {.by_name = true,
                            .rename = {{"^fc\\.weight$", "head/kernel"}},
                            .transpose = {"^head/kernel$"},
                            .cast = true});
  CHECK(model.get_weights()[0].equal(conv));
  for (const Variable& weight : model.weights()) {
    if (weight.path() != "head/kernel") continue;
    CHECK(weight.value().full().equal(expected_weights().at("head/kernel")));
  }
  CHECK_THAT(warnings.text(), Contains("has tensors of no weight (1): \"extra\""));
}

TEST_CASE("a block of a weight is read from a tensor in PyTorch's layout, with split axes") {
  const struct {
    Shape stored, weight;
  } cases[] = {{{5, 4}, {4, 5}},
               {{8, 6}, {6, 2, 4}},
               {{6, 8}, {2, 4, 6}},
               {{6, 3, 5}, {5, 3, 6}},
               {{6, 1, 5}, {5, 3, 2}},
               {{4, 1, 3, 3}, {3, 3, 4, 1}},
               {{6, 1, 3, 2}, {3, 2, 1, 6}},
               {{2, 3, 4, 5, 2}, {4, 5, 2, 3, 2}},
               {{6}, {2, 3}},
               {{}, {}}};
  for (const auto& one : cases) {
    const Shape &stored = one.stored, &weight = one.weight;
    CAPTURE(stored, weight);
    const at::Tensor tensor = integers(stored, 0, at::kFloat);
    const std::optional<StoredAxes> axes = StoredAxes::of_torch(stored, weight);
    REQUIRE(axes);
    const auto read = [&](const Rectangle& area) {
      at::Tensor part = tensor;
      for (size_t i = 0; i < stored.size(); ++i) {
        part = part.narrow(int64_t(i), area.begin[i], area.size(i));
      }
      return part.contiguous();
    };
    std::vector<int64_t> order;
    for (int64_t i = 2; i < int64_t(stored.size()); ++i) order.push_back(i);
    if (stored.size() >= 2) order.insert(order.end(), {1, 0});
    if (stored.size() == 1) order = {0};
    const at::Tensor all = tensor.permute(order).reshape(weight);
    CHECK(axes->read(full_rectangle(weight), read).equal(all));
    for (size_t axis = 0; axis < weight.size(); ++axis) {
      Rectangle half = full_rectangle(weight);
      half.begin[axis] = weight[axis] / 2;
      CHECK(axes->read(half, read)
                .equal(all.narrow(int64_t(axis), half.begin[axis], half.size(axis))));
    }
  }
  CHECK_FALSE(StoredAxes::of_torch({4, 6}, {4, 6}));
  CHECK_FALSE(StoredAxes::of_torch({8, 6}, {6, 3, 4}));
  CHECK_FALSE(StoredAxes::of_torch({3, 2}, {2, 3, 2}));
  CHECK_FALSE(StoredAxes::same({4, 6}, {6, 4}));
}

}  // namespace torch_weights_test
