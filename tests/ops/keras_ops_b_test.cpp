#include <tessera/framework/ops/ops.hpp>

#include <functional>
#include <map>
#include <set>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/keras_ops.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

/// Functions of keras.ops on indices, segments and images, and random numbers of keras.random.
namespace keras_ops_b_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using namespace tessera::test::keras_ops;

namespace {

using Tensors = std::vector<DTensor>;
/// Calls a function with the arguments and tensors of a golden case.
using Call = std::function<DTensor(const Json& arguments, const Tensors& in)>;

DTensor resized(const Json& arguments, const Tensors& in) {
  const std::vector<int64_t> size = integers(arguments, "size");
  return ops::image::resize(
      in[0], {size[0], size[1]},
      {.interpolation = text(arguments, "interpolation", "bilinear"),
       .antialias = option(arguments, "antialias", false),
       .crop_to_aspect_ratio = option(arguments, "crop_to_aspect_ratio", false),
       .pad_to_aspect_ratio = option(arguments, "pad_to_aspect_ratio", false),
       .fill_value = option(arguments, "fill_value", 0.0)});
}

DTensor patches(const Json& arguments, const Tensors& in) {
  ops::image::ExtractPatchesOptions options;
  options.strides = integers(arguments, "strides");
  if (arguments.contains("dilation_rate")) {
    options.dilation_rate = integers(arguments, "dilation_rate");
  }
  options.padding = text(arguments, "padding", "valid");
  return ops::image::extract_patches(in[0], integers(arguments, "size"), options);
}

DTensor padded(const Json& arguments, const Tensors& in) {
  return ops::image::pad_images(in[0],
                                {.top_padding = maybe_integer(arguments, "top_padding"),
                                 .left_padding = maybe_integer(arguments, "left_padding"),
                                 .bottom_padding = maybe_integer(arguments, "bottom_padding"),
                                 .right_padding = maybe_integer(arguments, "right_padding"),
                                 .target_height = maybe_integer(arguments, "target_height"),
                                 .target_width = maybe_integer(arguments, "target_width")});
}

DTensor cropped(const Json& arguments, const Tensors& in) {
  return ops::image::crop_images(in[0],
                                 {.top_cropping = maybe_integer(arguments, "top_cropping"),
                                  .left_cropping = maybe_integer(arguments, "left_cropping"),
                                  .bottom_cropping = maybe_integer(arguments, "bottom_cropping"),
                                  .right_cropping = maybe_integer(arguments, "right_cropping"),
                                  .target_height = maybe_integer(arguments, "target_height"),
                                  .target_width = maybe_integer(arguments, "target_width"),
                                  .data_format = text(arguments, "data_format")});
}

std::pair<DTensor, DTensor> counted(const Json& arguments, const DTensor& x) {
  ops::HistogramRange range;
  if (arguments.contains("range")) {
    range = std::pair(arguments.at("range").at(0).get<double>(),
                      arguments.at("range").at(1).get<double>());
  }
  return ops::histogram(x, option<int64_t>(arguments, "bins", 10), range);
}

DTensor edges_of(const Json& arguments, const Mesh& mesh) {
  const auto bins = arguments.at("bins").get<std::vector<double>>();
  return pack(at::tensor(bins, at::kDouble), Layout::replicated(mesh, 1));
}

const std::map<std::string, Call>& calls() {
  static const std::map<std::string, Call> all = {
      {"segment_sum",
       [](const Json& a, const Tensors& in) {
         return ops::segment_sum(in[0], in[1], a.at("num_segments"));
       }},
      {"segment_max",
       [](const Json& a, const Tensors& in) {
         return ops::segment_max(in[0], in[1], a.at("num_segments"));
       }},
      {"segment_min",
       [](const Json& a, const Tensors& in) {
         return ops::segment_min(in[0], in[1], a.at("num_segments"));
       }},
      {"scatter",
       [](const Json& a, const Tensors& in) {
         return ops::scatter(in[0], in[1], integers(a, "shape"));
       }},
      {"scatter_update",
       [](const Json& a, const Tensors& in) {
         return ops::scatter_update(in[0], in[1], in[2], text(a, "reduction"));
       }},
      {"slice_update",
       [](const Json&, const Tensors& in) {
         const at::Tensor start = in[1].full();
         return ops::slice_update(in[0], {start[0].item<int64_t>(), start[1].item<int64_t>()},
                                  in[2]);
       }},
      {"slice",
       [](const Json& a, const Tensors& in) {
         return ops::slice(in[0], integers(a, "start_indices"), integers(a, "shape"));
       }},
      {"take", [](const Json& a,
                  const Tensors& in) { return ops::take(in[0], in[1], maybe_integer(a, "axis")); }},
      {"multi_hot",
       [](const Json& a, const Tensors& in) { return ops::multi_hot(in[0], a.at("num_classes")); }},
      {"searchsorted",
       [](const Json& a, const Tensors& in) {
         return ops::searchsorted(in[0], in[1], text(a, "side") == "right");
       }},
      {"digitize",
       [](const Json& a, const Tensors& in) {
         return ops::digitize(in[0], edges_of(a, in[0].mesh()));
       }},
      {"bincount",
       [](const Json& a, const Tensors& in) {
         return ops::bincount(in[0], a.at("minlength"), in.size() > 1 ? in[1] : DTensor());
       }},
      {"histogram", [](const Json& a, const Tensors& in) { return counted(a, in[0]).first; }},
      {"image.resize", resized},
      {"image.extract_patches", patches},
      {"image.rgb_to_grayscale",
       [](const Json& a, const Tensors& in) {
         return ops::image::rgb_to_grayscale(in[0], text(a, "data_format"));
       }},
      {"image.pad_images", padded},
      {"image.crop_images", cropped},
  };
  return all;
}

/// Checks the value and the gradients of a case for packed inputs.
void check_packed(const Json& golden, const Tensors& in) {
  const Call& call = calls().at(golden.at("name"));
  GradientTape tape;
  Tensors sources;
  for (const DTensor& x : in) {
    if (!at::isFloatingType(x.dtype())) continue;
    tape.watch(x);
    sources.push_back(x);
  }
  const DTensor y = call(golden.at("arguments"), in);
  CHECK(unlike(y.full(), golden.at("y")) == "");
  if (golden.contains("second")) {
    CHECK(unlike(counted(golden.at("arguments"), in[0]).second.full(), golden.at("second")) == "");
  }
  if (!golden.contains("gradients")) return;
  const at::Tensor dy = upstream(at::empty(y.shape(), y.dtype()));
  const DTensor loss = ops::sum(y * pack(dy, Layout::replicated(y.mesh(), y.rank())));
  const std::vector<DTensor> gradients = tape.gradient(loss, sources);
  REQUIRE(gradients.size() == golden.at("gradients").size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    CHECK(unlike(gradients[i].full(), golden.at("gradients").at(i)) == "");
  }
}

/// Checks a case in layouts of one, two, three and four devices.
void check_case(const Json& golden) {
  const std::vector<at::Tensor> inputs = input_tensors(golden.at("inputs"));
  for (const std::vector<int64_t>& sizes :
       std::vector<std::vector<int64_t>>{{1}, {2}, {3}, {2, 2}}) {
    const Mesh mesh = virtual_mesh(sizes);
    std::vector<std::vector<Layout>> lists;
    for (const at::Tensor& x : inputs) lists.push_back(layouts_of(mesh, x.dim(), {}));
    for (const std::vector<Layout>& layouts : choices(lists, 8, text_seed(golden.dump()))) {
      INFO(short_name(mesh) << ", " << short_name(layouts));
      Tensors in;
      for (size_t i = 0; i < inputs.size(); ++i) in.push_back(pack(inputs[i], layouts[i]));
      check_packed(golden, in);
    }
  }
}

at::ScalarType dtype_named(const std::string& name) {
  static const std::map<std::string, at::ScalarType> names = {{"float32", at::kFloat},
                                                              {"float64", at::kDouble},
                                                              {"int32", at::kInt},
                                                              {"int64", at::kLong},
                                                              {"uint8", at::kByte}};
  return names.at(name);
}

/// Draws the numbers of a golden case.
DTensor drawn(const Json& golden, const Mesh& mesh) {
  const std::string name = golden.at("name");
  const Json& a = golden.at("arguments");
  const DTensor seed = ops::seed_input({a.at("seed"), 0}, mesh);
  if (name == "shuffle") {
    const at::Tensor x = input_tensor(a.at("x"));
    return ops::random_shuffle(pack(x, default_layout(2)), seed, a.at("axis"));
  }
  const auto shape = a.at("shape").get<Shape>();
  const auto number = [&](const char* key) { return Operand(a.at(key).get<double>()); };
  const at::ScalarType dtype =
      dtype_named(text(a, "dtype", name == "randint" ? "int32" : "float32"));
  if (name == "randint") {
    return ops::random_randint(shape, a.at("minval"), a.at("maxval"), seed, dtype);
  }
  if (name == "beta") return ops::random_beta(shape, number("alpha"), number("beta"), seed, dtype);
  if (name == "binomial") {
    return ops::random_binomial(shape, number("counts"), number("probabilities"), seed, dtype);
  }
  REQUIRE(name == "gamma");
  if (a.at("alpha").is_number()) return ops::random_gamma(shape, number("alpha"), seed, dtype);
  std::vector<double> alphas;
  for (const Json& row : a.at("alpha")) {
    for (const Json& alpha : row) alphas.push_back(alpha.get<double>());
  }
  const DTensor alpha = pack(at::tensor(alphas, at::kDouble).view(shape), default_layout(2));
  return ops::random_gamma(shape, alpha, seed, dtype);
}

}  // namespace

TEST_CASE("functions on indices, segments and images match Keras in every layout") {
  std::set<std::string> seen;
  for (const char* part : {"segments", "scatters", "indices", "counts", "images"}) {
    for (const Json& golden : golden_part("keras_ops_b.json", part)) {
      INFO(golden.at("name") << golden.at("arguments").dump());
      check_case(golden);
      seen.insert(golden.at("name"));
    }
  }
  CHECK(seen.size() == calls().size());
}

TEST_CASE("random integers, permutations, gamma, beta and binomial numbers are those of Keras") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  for (const Json& golden : golden_part("keras_ops_b.json", "random")) {
    INFO(golden.at("name") << golden.at("arguments").dump());
    const auto rank = static_cast<int64_t>(golden.at("y").at("shape").size());
    for (const Layout& layout : all_layouts(mesh, rank)) {
      INFO(layout.describe());
      const DTensor y =
          call_with_layout([&](const Json& g) { return drawn(g, mesh); }, layout, golden);
      CHECK(y.layout() == layout);
      CHECK(y.dtype() == dtype_named(golden.at("y").at("dtype")));
      CHECK(unlike(y.full(), golden.at("y")) == "");
    }
  }
}

}  // namespace keras_ops_b_test
