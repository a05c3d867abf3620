#include <tessera/layers/preprocessing/internal/category_output.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::detail {
namespace {

/// Whether one-hot rows replace the last axis.
bool single_column(const Shape& numbers) { return numbers.size() > 1 && numbers.back() == 1; }

}  // namespace

void check_output_mode(const std::string& where, const std::string& mode,
                       const std::vector<std::string>& known, bool sparse) {
  if (sparse) {
    throw ConfigError(where, "sparse is false: there are no sparse tensors", "true",
                      "leave it out");
  }
  if (std::find(known.begin(), known.end(), mode) != known.end()) return;
  throw ConfigError(where, "output_mode is one of " + quoted_list(known), in_quotes(mode),
                    suggestion(mode, known));
}

Shape encoded_shape(const std::string& where, const Shape& numbers, const std::string& mode,
                    int64_t depth) {
  if (mode == "int") return numbers;
  Shape shape = numbers;
  if (mode == "one_hot") {
    if (single_column(shape)) shape.pop_back();
  } else if (shape.empty() || shape.size() > 2) {
    throw ShapeError(where, str("in ", in_quotes(mode), " mode the input is (batch, numbers)"),
                     to_string(numbers), "reshape it first, or use \"one_hot\"");
  } else {
    shape.pop_back();
  }
  shape.push_back(depth);
  return shape;
}

DTensor encoded(const DTensor& numbers, const std::string& mode, int64_t depth,
                at::ScalarType dtype, const DTensor& weights) {
  if (mode == "int") return ops::cast(numbers, dtype);
  const int64_t last = numbers.rank() - 1;
  if (mode == "one_hot") {
    const DTensor each = single_column(numbers.shape()) ? ops::squeeze(numbers, {last}) : numbers;
    return ops::one_hot(each, depth, dtype);
  }
  DTensor hits = ops::one_hot(numbers, depth, dtype);
  if (weights.defined()) {
    const DTensor cast = ops::cast(weights, dtype);
    hits = hits * ops::expand_dims(cast, last + 1);
  }
  const DTensor counts = ops::sum(hits, {last});
  return ops::cast(mode == "multi_hot" ? ops::clip(counts, 0, 1) : counts, dtype);
}

at::Tensor encoded(const at::Tensor& numbers, const std::string& mode, int64_t depth,
                   at::ScalarType dtype) {
  if (mode == "int") return numbers.to(dtype);
  const bool squeezed = mode == "one_hot" && single_column(numbers.sizes().vec());
  const at::Tensor each = squeezed ? numbers.squeeze(-1) : numbers;
  const at::Tensor hits = each.unsqueeze(-1).eq(at::arange(depth, at::kLong)).to(dtype);
  if (mode == "one_hot") return hits;
  const at::Tensor counts = hits.sum(-2);
  return mode == "multi_hot" ? counts.clamp_max(1) : counts;
}

DTensor truncated_to_int64(const DTensor& x) {
  return x.dtype() == at::kLong ? x : ops::cast(x, at::kLong);
}

}  // namespace tessera::detail
