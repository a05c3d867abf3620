#include <tessera/framework/ops/engine/op.hpp>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace registry_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using Names = std::set<std::string>;

/// Functions of namespace ops that are composed of several operations or of one with another name.
const Names compositions = {"abs_max_quantize",
                            "abs_max_scale",
                            "adaptive_avg_pool",
                            "adaptive_max_pool",
                            "allclose",
                            "append",
                            "arange",
                            "argmax",
                            "argmin",
                            "argsort",
                            "array_split",
                            "attention_and_logsumexp",
                            "average",
                            "batch_normalization",
                            "binary_crossentropy",
                            "bincount",
                            "categorical",
                            "categorical_crossentropy",
                            "celu",
                            "count_nonzero",
                            "cross",
                            "deferred_logits",
                            "deg2rad",
                            "depthwise_conv",
                            "diag",
                            "diagflat",
                            "diagonal",
                            "diff",
                            "digitize",
                            "divide_no_nan",
                            "dot",
                            "dsplit",
                            "dstack",
                            "embedding",
                            "expand_dims",
                            "eye",
                            "fabs",
                            "flatten",
                            "fliplr",
                            "flipud",
                            "fmax",
                            "fmin",
                            "full",
                            "full_like",
                            "geomspace",
                            "glu",
                            "hard_swish",
                            "hard_tanh",
                            "heaviside",
                            "histogram",
                            "hsplit",
                            "hstack",
                            "identity",
                            "in_top_k",
                            "inner",
                            "isclose",
                            "isin",
                            "isneginf",
                            "isposinf",
                            "kron",
                            "linspace",
                            "logaddexp2",
                            "logspace",
                            "logsumexp",
                            "max_pool_with_positions",
                            "mean",
                            "meshgrid",
                            "moments",
                            "moveaxis",
                            "multi_hot",
                            "nan_to_num",
                            "nancumprod",
                            "nancumsum",
                            "nanmax",
                            "nanmean",
                            "nanmin",
                            "nanprod",
                            "nanstd",
                            "nansum",
                            "nanvar",
                            "norm",
                            "normalize",
                            "ones_like",
                            "outer",
                            "ptp",
                            "rad2deg",
                            "random_beta",
                            "random_shuffle",
                            "ravel",
                            "relayout_like",
                            "repeat",
                            "rms_normalization",
                            "roll",
                            "rot90",
                            "scatter",
                            "scatter_update",
                            "seed_input",
                            "separable_conv",
                            "slice_update",
                            "softmax_cross_entropy",
                            "sparse_categorical_crossentropy",
                            "split",
                            "squeeze",
                            "stack",
                            "std",
                            "swapaxes",
                            "swish",
                            "take",
                            "tensordot",
                            "tile",
                            "trace",
                            "trapezoid",
                            "tri",
                            "unstack",
                            "vander",
                            "variance",
                            "vdot",
                            "vsplit",
                            "vstack",
                            "zeros_like"};

/// Registered operations that no function has the name of.
const Names internal = {"add_rows",
                        "affine_transform_grad",
                        "arg_extreme",
                        "attention_grad",
                        "attention_mask_grad",
                        "avg_pool_grad",
                        "class_terms",
                        "class_terms_grad",
                        "clip_grad",
                        "ctc_loss_grad",
                        "dense_relu",
                        "elu_grad",
                        "first_index",
                        "flat_indices",
                        "fused_conv",
                        "gather_grad",
                        "gelu_grad",
                        "grouped_kernel_grad",
                        "gumbel_noise",
                        "hard_shrink_grad",
                        "hard_sigmoid_grad",
                        "hard_silu_grad",
                        "layer_norm_grad",
                        "linear_class_max",
                        "linear_class_terms",
                        "linear_class_terms_grad",
                        "linear_scan",
                        "leaky_relu_grad",
                        "log_sigmoid_grad",
                        "lstm_layer",
                        "log_softmax_grad",
                        "max_pool_grad",
                        "mish_grad",
                        "pow_scalar",
                        "prod_grad",
                        "random_permutation",
                        "relu6_grad",
                        "relu_grad",
                        "resample_grad",
                        "ring_attention",
                        "ring_attention_grad",
                        "selu_grad",
                        "shared_heads_sum",
                        "sigmoid_grad",
                        "silu_grad",
                        "soft_shrink_grad",
                        "softmax_grad",
                        "softsign_grad",
                        "sparse_plus_grad",
                        "sparse_sigmoid_grad",
                        "sparse_softmax_cross_entropy_grad",
                        "sparsemax_grad",
                        "squareplus_grad",
                        "take_along_axis_grad",
                        "tanh_grad",
                        "tanh_shrink_grad",
                        "threshold_grad",
                        "norm_by",
                        "norm_gradient",
                        "norm_gradient_sums",
                        "norm_moments",
                        "norm_sums",
                        "recurrence",
                        "recurrence_grad"};

/// Operations whose gradient() throws StateError: those on bools and indices, and gradients that
/// have no second derivative.
const Names without_derivative = {"all",
                                  "any",
                                  "arg_extreme",
                                  "attention_grad",
                                  "attention_mask_grad",
                                  "cached_attention",
                                  "ctc_loss_grad",
                                  "first_index",
                                  "flat_indices",
                                  "fused_conv",
                                  "linear_class_terms_grad",
                                  "lstm_layer",
                                  "one_hot",
                                  "recurrence_grad",
                                  "ring_attention_grad",
                                  "searchsorted",
                                  "shared_heads_sum"};

/// Returns the functions that the headers of framework/ops declare to return one DTensor or
/// several.
Names declared() {
  const std::regex function(
      R"(^(?:DTensor|std::vector<DTensor>|std::pair<DTensor, DTensor>) (\w+)\()");
  Names names;
  const auto folder = golden_path("").parent_path().parent_path().parent_path() / "framework/ops";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".hpp") continue;
    const std::string text = read_file(entry.path());
    // After declarations of `tessera` itself, a header opens `ops` alone.
    const size_t from =
        std::min(text.find("\nnamespace tessera::ops {"), text.find("\nnamespace ops {"));
    if (from == std::string::npos) continue;
    const std::string body = text.substr(from, text.find("\n}  // namespace ", from) - from);
    std::istringstream lines(body);
    std::smatch match;
    for (std::string line; std::getline(lines, line);) {
      if (std::regex_search(line, match, function)) names.insert(match[1]);
    }
  }
  return names;
}

Names registered() {
  Names names;
  for (const OpInfo* info : op_registry()) names.insert(std::string(info->name));
  return names;
}

/// Returns the elements of a that b lacks, as one text.
std::string lacking(const Names& a, const Names& b) {
  std::string text;
  for (const std::string& name : a) {
    if (!b.count(name)) text += (text.empty() ? "" : " ") + name;
  }
  return text;
}

Names joined(Names a, const Names& b) {
  a.insert(b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("every declared function is a registered operation or a composition") {
  REQUIRE(declared().size() > 80);
  CHECK(lacking(declared(), joined(registered(), compositions)) == "");
  CHECK(lacking(compositions, declared()) == "");
}

TEST_CASE("every registered operation is declared, or known to be internal") {
  CHECK(lacking(registered(), joined(declared(), internal)) == "");
  CHECK(lacking(internal, registered()) == "");
}

TEST_CASE("operations without a derivative are the intended ones") {
  Names none;
  for (const OpInfo* info : op_registry()) {
    if (!info->differentiable && !info->stops_gradient) none.insert(std::string(info->name));
  }
  CHECK(lacking(none, without_derivative) == "");
  CHECK(lacking(without_derivative, none) == "");
}

TEST_CASE("README.md has the numbers of operations and of those with gradients") {
  size_t called = 0, differentiable = 0;
  for (const OpInfo* info : op_registry()) {
    if (internal.count(std::string(info->name))) continue;
    ++called;
    differentiable += info->differentiable;
  }
  const auto readme = golden_path("").parent_path().parent_path().parent_path() / "README.md";
  const std::string text = read_file(readme);
  std::smatch told;
  REQUIRE(std::regex_search(
      text, told, std::regex(R"(More than (\d+) operations, more than (\d+) of them with grad)")));
  const size_t operations = std::stoul(told[1]), gradients = std::stoul(told[2]);
  CHECK(called > operations);
  CHECK(called <= operations + 20);
  CHECK(differentiable > gradients);
  CHECK(differentiable <= gradients + 20);
}

TEST_CASE("operations are found by name, and names are unique") {
  CHECK(find_op("matmul") != nullptr);
  CHECK(find_op("matmull") == nullptr);
  CHECK_THROWS_WITH(register_op(*find_op("matmul")),
                    Catch::Contains("[op matmul]") && Catch::Contains("registered twice"));
}

}  // namespace registry_test
