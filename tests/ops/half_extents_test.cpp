#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/virtual_meshes.hpp"

/// Operations that add up 10^4 elements of float16 and bfloat16.
namespace half_extents_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using at::Tensor;
using Inputs = std::vector<DTensor>;
using Names = std::vector<std::string>;

constexpr int64_t extent = 10000;

Tensor uniform(const Shape& shape, double lo, double hi) {
  return random_values({shape, at::kDouble, lo, hi}, 7);
}
Tensor indices(const Shape& shape, int64_t count) {
  return random_values({shape, at::kLong, 0, double(count)}, 7);
}

/// Rows whose sum is 5000, and whose first half has the sum 70000, which float16 cannot represent.
Tensor cancelling_rows() {
  return at::cat({at::full({extent / 2, 3}, 14.0, at::kDouble),
                  at::full({extent / 2, 3}, -13.0, at::kDouble)});
}

/// Rows whose product is 1; that of the first one is 2^27.
Tensor cancelling_factors() {
  const Tensor x = at::ones({extent, 3}, at::kDouble);
  x.narrow(0, 0, 2).fill_(512);
  x.narrow(0, extent - 2, 2).fill_(1.0 / 512);
  return x;
}

/// Zeros with a peak every 2000 steps, which is the maximum of all windows around it.
Tensor peaks() {
  const Tensor x = at::zeros({1, extent, 1}, at::kDouble);
  x.slice(1, 500, extent, 2000).fill_(5);
  return x;
}

struct Case {
  Names names;             ///< the operations that add up 10^4 elements in it
  std::vector<Tensor> in;  ///< floating ones are rounded to float16 or bfloat16
  Function function;
};

std::vector<Case> reductions() {
  return {
      {{"sum"}, {cancelling_rows()}, [](const Inputs& x) { return ops::sum(x[0], {0}); }},
      {{"mean"},
       {uniform({extent, 3}, 0, 20)},
       [](const Inputs& x) { return ops::mean(x[0], {0}); }},
      {{"variance"},
       {uniform({extent, 3}, -400, 400)},
       [](const Inputs& x) { return ops::variance(x[0], {0}); }},
      {{"logsumexp"},
       {uniform({3, extent}, -2, 2)},
       [](const Inputs& x) { return ops::logsumexp(x[0], {1}); }},
      {{"max"},
       {at::ones({extent, 3}, at::kDouble)},
       [](const Inputs& x) { return ops::max(x[0], {0}); }},
      {{"min"},
       {at::ones({extent, 3}, at::kDouble)},
       [](const Inputs& x) { return ops::min(x[0], {0}); }},
      {{"prod", "prod_grad"},
       {cancelling_factors()},
       [](const Inputs& x) { return ops::prod(x[0]); }},
      {{"cumsum"},
       {uniform({3, extent}, 0.5, 1.5)},
       [](const Inputs& x) { return ops::cumsum(x[0], 1); }},
      {{"cumprod", "linear_scan"},
       {uniform({3, extent}, 0.999, 1.001)},
       [](const Inputs& x) { return ops::cumprod(x[0], 1); }},
      {{"segment_sum"},
       {uniform({extent}, 0, 2), indices({extent}, 4)},
       [](const Inputs& x) { return ops::segment_sum(x[0], x[1], 4); }},
      {{"segment_max"},
       {at::ones({extent}, at::kDouble), indices({extent}, 4)},
       [](const Inputs& x) { return ops::segment_max(x[0], x[1], 4); }},
      {{"segment_min"},
       {at::ones({extent, 2}, at::kDouble), indices({extent}, 4)},
       [](const Inputs& x) { return ops::segment_min(x[0], x[1], 4); }},
      {{"gather_grad"},
       {uniform({4, 2}, 0, 1), indices({extent}, 4)},
       [](const Inputs& x) { return ops::gather(x[0], x[1]); }},
      {{"take_along_axis_grad"},
       {uniform({2, 4}, 0, 1), indices({2, extent}, 4)},
       [](const Inputs& x) { return ops::take_along_axis(x[0], x[1], 1); }},
      {{"the gradient of a broadcast operand"},
       {uniform({extent, 3}, 0, 1), uniform({3}, 0, 1)},
       [](const Inputs& x) { return ops::add(x[0], x[1]); }},
      {{"the gradient of scale_by's factor"},
       {uniform({extent}, 0, 1), uniform({}, 0.5, 1)},
       [](const Inputs& x) { return ops::scale_by(x[0], x[1]); }},
      {{"softmax", "softmax_grad"},
       {uniform({2, extent}, -2, 2)},
       [](const Inputs& x) { return ops::softmax(x[0]); }},
      {{"log_softmax", "log_softmax_grad"},
       {uniform({2, extent}, -3, 3)},
       [](const Inputs& x) { return ops::log_softmax(x[0]); }},
      {{"sparsemax", "sparsemax_grad"},
       {uniform({2, extent}, -1, 1)},
       [](const Inputs& x) { return ops::sparsemax(x[0], -1); }},
      {{"layer_norm", "layer_norm_grad"},
       {uniform({2, extent}, 0, 20)},
       [](const Inputs& x) { return ops::layer_norm(x[0]); }},
      {{"sparse_softmax_cross_entropy", "sparse_softmax_cross_entropy_grad", "class_terms"},
       {uniform({2, extent}, -3, 3), indices({2}, extent)},
       [](const Inputs& x) { return ops::sparse_softmax_cross_entropy(x[0], x[1]); }},
      {{"linear_softmax_cross_entropy", "linear_class_max", "linear_class_terms",
        "linear_class_terms_grad"},
       {uniform({2, 3}, -1, 1), uniform({3, extent}, -1, 1), indices({2}, extent)},
       [](const Inputs& x) { return ops::linear_softmax_cross_entropy(x[0], x[1], x[2]); }},
      // The logarithms of probabilities of 10^4 steps would be too large for float32.
      {{"ctc_loss", "ctc_loss_grad"},
       {uniform({2, extent / 10, 3}, -1, 1), at::tensor({1, 2, 2, 1}, at::kLong).view({2, 2})},
       [](const Inputs& x) { return ops::ctc_loss(x[0], x[1]); }},
  };
}

/// Returns x · kernel + bias by the fused operations, which take parameters only.
DTensor fused_dense(const Inputs& x) {
  x[1].mark_parameter();
  x[2].mark_parameter();
  return ops::dense(x[0], x[1], x[2]) + ops::dense(x[0], x[1], x[2], /*relu=*/true);
}

std::vector<Case> products() {
  return {
      {{"matmul"},
       {uniform({3, extent}, 0, 1), uniform({extent, 2}, 0, 1)},
       [](const Inputs& x) { return ops::matmul(x[0], x[1]); }},
      {{"dense", "dense_relu"},
       {uniform({3, extent}, 0, 1), uniform({extent, 2}, 0, 1), uniform({2}, 0, 1)},
       fused_dense},
      {{"einsum"},
       {uniform({2, 3, extent}, 0, 1), uniform({2, extent, 2}, 0, 1)},
       [](const Inputs& x) { return ops::einsum("abz,azc->abc", x); }},
      {{"grouped_matmul"},
       {uniform({3, extent}, 0, 1), uniform({2, extent, 2}, 0, 1), indices({3}, 2)},
       [](const Inputs& x) { return ops::grouped_matmul(x[0], x[1], x[2]); }},
      {{"grouped_kernel_grad"},
       {uniform({extent, 3}, 0, 1), uniform({2, 3, 2}, 0, 1), indices({extent}, 2)},
       [](const Inputs& x) { return ops::grouped_matmul(x[0], x[1], x[2]); }},
      {{"conv"},
       {uniform({1, 3, extent}, 0, 1), uniform({1, extent, 2}, 0, 1)},
       [](const Inputs& x) { return ops::conv(x[0], x[1], {{1}}); }},
      {{"conv_transpose"},
       {uniform({1, 3, 2}, 0, 1), uniform({1, 2, extent}, 0, 1)},
       [](const Inputs& x) { return ops::conv(x[0], x[1], {{1}}); }},
      {{"conv_kernel_grad"},
       {uniform({1, extent, 2}, 0, 1), uniform({1, 2, 2}, 0, 1)},
       [](const Inputs& x) { return ops::conv(x[0], x[1], {{1}}); }},
      {{"avg_pool"},
       {uniform({1, extent, 2}, 0, 20)},
       [](const Inputs& x) {
         return ops::avg_pool(x[0], {{extent, extent}});
       }},
      {{"avg_pool_grad"},
       {uniform({1, extent, 1}, 0, 1)},
       [](const Inputs& x) {
         return ops::avg_pool(x[0], {{1000, 1}});
       }},
      {{"max_pool_grad"},
       {peaks()},
       [](const Inputs& x) {
         return ops::max_pool(x[0], {{1000, 1}});
       }},
      {{"resample"},
       {uniform({extent, 2}, 0, 20)},
       [](const Inputs& x) {
         return ops::resample(x[0], 0, 1, ops::Interpolation::bilinear, true);
       }},
      {{"resample_grad"},
       {uniform({1, 2}, 0, 1)},
       [](const Inputs& x) {
         return ops::resample(x[0], 0, extent, ops::Interpolation::bilinear);
       }},
      {{"attention"},
       {uniform({1, 2, 1, 4}, -1, 1), uniform({1, extent, 1, 4}, -1, 1),
        uniform({1, extent, 1, 4}, 0, 20)},
       [](const Inputs& x) { return ops::attention(x[0], x[1], x[2]); }},
      {{"attention_grad", "attention_mask_grad"},
       {uniform({1, extent, 1, 4}, 0, 1), uniform({1, 2, 1, 4}, -1, 1), uniform({1, 2, 1, 4}, 0, 1),
        uniform({1, 1, 1, 2}, -1, 1)},
       [](const Inputs& x) { return ops::attention(x[0], x[1], x[2], x[3]); }},
  };
}

/// Operations that are no case, by the reason.
const std::map<std::string, Names>& others() {
  static const std::map<std::string, Names> names = {
      {"it compares, selects or moves elements, and adds none",
       {"all", "any", "arg_extreme", "concat", "first_index", "flip", "gather", "max_pool", "pad",
        "slice", "sort", "take_along_axis", "top_k"}},
      {"it adds the few query heads that share a key", {"shared_heads_sum"}},
      {"it adds two products", {"rotary"}},
      {"it computes in float32 or wider on CPUs, and layers use it for float32 and float64 alone",
       {"fused_conv", "lstm_layer", "recurrence", "recurrence_grad"}},
      {"it adds up in float64", {"norm_gradient_sums", "norm_sums"}},
      {"its sums of integers are exact", {"int8_einsum"}},
      {"it computes by the code of attention", {"cached_attention"}},
      {"ring_attention_test.cpp compares it with attention in float16 and bfloat16",
       {"ring_attention", "ring_attention_grad"}}};
  return names;
}

bool is_floating(const Tensor& x) { return at::isFloatingType(x.scalar_type()); }

/// Returns the value and the gradients of floating inputs, for output gradients that the dtype
/// `half` can represent.
std::vector<Tensor> results(const Function& function, const Inputs& in, at::ScalarType half) {
  GradientTape tape;
  Inputs sources;
  for (const DTensor& x : in) {
    if (!at::isFloatingType(x.dtype())) continue;
    tape.watch(x);
    sources.push_back(x);
  }
  const DTensor y = function(in);
  const Tensor dy = random_values({y.shape(), at::kDouble, 0.5, 2}, 11).to(half).to(y.dtype());
  std::vector<Tensor> all = {y.full()};
  const GradientOptions options = {.output_gradient = pack(dy, fetch_layout(y))};
  for (const DTensor& gradient : tape.gradient(y, sources, options)) {
    all.push_back(gradient.full());
  }
  return all;
}

/// Empty if a case is correct on one, two and four devices.
std::string wrong_case(const Case& c, at::ScalarType half) {
  const c10::InferenceMode inference;
  // Eight units in the last place of the largest element.
  const double tolerance = half == at::kHalf ? 4e-3 : 3e-2;
  std::vector<Tensor> rounded;
  Inputs exact;
  for (const Tensor& x : c.in) {
    rounded.push_back(is_floating(x) ? x.to(half) : x);
    const Tensor wide = is_floating(x) ? rounded.back().to(at::kDouble) : x;
    exact.push_back(pack(wide, Layout::replicated(virtual_mesh({1}), x.dim())));
  }
  const std::vector<Tensor> expected = results(c.function, exact, half);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1}, {2}, {2, 2}}) {
    const Mesh mesh = virtual_mesh(sizes);
    std::vector<std::vector<Layout>> lists;
    for (const Tensor& x : rounded) lists.push_back(layouts_of(mesh, x.dim(), {}));
    for (const std::vector<Layout>& layouts : choices(lists, 4, text_seed(c.names[0]))) {
      Inputs in;
      for (size_t i = 0; i < rounded.size(); ++i) in.push_back(pack(rounded[i], layouts[i]));
      const std::string wrong =
          difference_in_float64(results(c.function, in, half), expected, tolerance);
      if (!wrong.empty()) return str(short_name(mesh), ", ", short_name(layouts), ": ", wrong);
    }
  }
  return "";
}

/// Whether a result depends on several elements of an input: an axis of an input has no place in an
/// output, or is not sharded as it is.
bool reads_several(const OpInfo& info) {
  if (info.moves_blocks) return false;
  for (const AnySample& sample : info.samples()) {
    Specs in;
    for (const SampleInput& input : sample.inputs) in.push_back({input.shape, input.dtype});
    const Rule rule = info.rule(sample.op.get(), in);
    for (const std::vector<int>& axes : rule.in) {
      for (const int factor : axes) {
        if (factor == Rule::none) continue;
        bool passes = rule.factors[size_t(factor)] == FactorKind::pass;
        for (const std::vector<int>& out : rule.out) {
          passes = passes && std::find(out.begin(), out.end(), factor) != out.end();
        }
        if (!passes) return true;
      }
    }
  }
  return false;
}

}  // namespace

TEST_CASE("operations that add up 10^4 float16 or bfloat16 elements have float64's results") {
  for (const std::vector<Case>& cases : {reductions(), products()}) {
    for (const Case& c : cases) {
      for (const at::ScalarType half : {at::kHalf, at::kBFloat16}) {
        INFO(c.names[0] << " in " << half);
        CHECK(wrong_case(c, half) == "");
      }
    }
  }
}

TEST_CASE("each operation that reads several elements has a case of 10^4, or a reason for none") {
  std::set<std::string> known;
  for (const std::vector<Case>& cases : {reductions(), products()}) {
    for (const Case& c : cases) known.insert(c.names.begin(), c.names.end());
  }
  for (const auto& [reason, names] : others()) {
    for (const std::string& name : names) {
      INFO(name);
      CHECK(find_op(name) != nullptr);
      CHECK(known.insert(name).second);
    }
  }
  for (const OpInfo* info : op_registry()) {
    INFO(info->name);
    CHECK((!reads_several(*info) || known.count(std::string(info->name)) > 0));
  }
}

}  // namespace half_extents_test
