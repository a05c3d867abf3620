#include <tessera/framework/nn/internal/lora_layer.hpp>

#include <cmath>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/equation.hpp>
#include <tessera/framework/ops/matmul.hpp>

namespace tessera::detail {
namespace {

/// Returns a letter that the equation lacks.
char unused_letter(const std::string& equation) {
  for (char c = 'A'; c <= 'z'; ++c) {
    const bool is_letter = c <= 'Z' || c >= 'a';
    if (is_letter && equation.find(c) == std::string::npos) return c;
  }
  throw ConfigError("equation", "at most 51 letters", in_quotes(equation),
                    "join axes of the input first");
}

/// Whether the output has all of `letters`, and `other` has none.
bool only_in_output(const std::string& letters, const std::string& other,
                    const std::string& output) {
  return letters.find_first_of(other) == std::string::npos &&
         letters.find_first_not_of(output) == std::string::npos;
}

/// Freezes the layers without layers and without adapters below `layer`; adds those with adapters.
void freeze_others(const Layer& layer, std::vector<LoraLayer*>& adapted) {
  for (const auto& inner : layer.sublayers()) {
    freeze_others(*inner, adapted);
    if (inner->has_lora()) {
      adapted.push_back(&dynamic_cast<LoraLayer&>(*inner));
    } else if (inner->sublayers().empty()) {
      // Freezing a layer may change its call, as for batch normalization.
      inner->set_trainable(false);
    }
  }
}

}  // namespace

void LoraLayer::check_adapter(int64_t rank, const LoraOptions& options) const {
  if (!built()) {
    throw StateError(where(), "a layer is built before it gets an adapter",
                     "a layer without weights", "call it, or build() with an input shape, first");
  }
  if (rank < 1) {
    throw ConfigError(where(), "the rank of an adapter is at least 1", str(rank),
                      "pass a small number, such as 8");
  }
  if (has_adapter()) {
    throw StateError(where(), "a layer has one adapter", str("one of rank ", rank_),
                     "merge_lora() first");
  }
  if (kernel_.spec().constraint) {
    throw ConfigError(where(), "the weight of an adapter has no constraint",
                      in_quotes(kernel_.path()) + " with one", "leave the constraint out");
  }
  if (options.as_matrix && input_axes() == 0) {
    throw ConfigError(where(), "as_matrix is for kernels whose inputs are the first axes",
                      to_string(kernel_.shape()), "leave as_matrix out");
  }
}

void LoraLayer::make_adapter(int64_t rank, const LoraOptions& options) {
  const Shape& kernel = kernel_.shape();
  const int64_t own = options.as_matrix ? input_axes() : static_cast<int64_t>(kernel.size()) - 1;
  Shape a(kernel.begin(), kernel.begin() + own), b(kernel.begin() + own, kernel.end());
  a.push_back(rank);
  b.insert(b.begin(), rank);
  const std::string name = kernel_.path().substr(path().size() + 1);
  // In Keras as well, float32 whatever the kernel is: updates are small.
  const WeightOptions weight{.regularizer = kernel_regularizer(), .dtype = at::kFloat};
  a_ = add_weight(str("lora_", name, "_a"), a, options.a_initializer, weight);
  b_ = add_weight(str("lora_", name, "_b"), b, options.b_initializer, weight);
  kernel_.set_trainable(false);
  rank_ = rank;
  alpha_ = options.alpha.value_or(static_cast<double>(rank));
  if (!kernel_.placed()) return;
  follow_kernel(a_, true);
  follow_kernel(b_, false);
}

void LoraLayer::merge_adapter() {
  for (auto& [weight, value] : merged_weights()) weight.assign(value);
  remove_weights({a_, b_});
  a_ = b_ = {};
  rank_ = 0;
  alpha_ = 0;
  kernel_.set_trainable(trainable() && kernel_.spec().trainable);
}

void LoraLayer::set_adapter_when_built(int64_t rank, double alpha) {
  rank_ = rank;
  alpha_ = alpha;
}

void LoraLayer::make_configured_adapter() {
  if (rank_ == 0) return;
  if (kernel_.spec().constraint) {
    throw ConfigError(where(), "the weight of an adapter has no constraint",
                      in_quotes(kernel_.path()) + " with one", "leave lora_rank out");
  }
  make_adapter(rank_, {.alpha = alpha_});
}

/// Returns alpha / rank · A · B of values of the factors.
DTensor LoraLayer::scaled_product(const DTensor& a, const DTensor& b) const {
  const auto own = static_cast<size_t>(a.rank() - 1), others = static_cast<size_t>(b.rank() - 1);
  const std::string letters = "abcdefghijklmnopqrstuvwxyz";
  const std::string of_a = letters.substr(0, own), of_b = letters.substr(own, others);
  return ops::einsum(of_a + "R,R" + of_b + "->" + of_a + of_b, {a, b}) * scale();
}

DTensor LoraLayer::delta() const { return scaled_product(read(a_), read(b_)); }

DTensor LoraLayer::read_adapted() const {
  const DTensor kernel = read(kernel_);
  return has_adapter() ? kernel + delta() : kernel;
}

DTensor LoraLayer::adapter_product(const std::string& equation, const DTensor& x) const {
  const Equation terms = split_equation(equation);
  const std::string &in = terms.in[0], &kernel = terms.in[1], &out = *terms.out;
  const size_t own = a_.shape().size() - 1;
  const std::string of_a = kernel.substr(0, own), of_b = kernel.substr(own);
  if (!only_in_output(of_b, in, out)) return ops::einsum(equation, {x, delta()});
  const std::string r(1, unused_letter(equation));
  std::string low = out;
  std::erase_if(low, [&](char letter) { return of_b.find(letter) != std::string::npos; });
  low += r;
  const DTensor narrow = ops::einsum(in + "," + of_a + r + "->" + low, {x, read(a_)});
  return ops::einsum(low + "," + r + of_b + "->" + out, {narrow, read(b_)}) * scale();
}

std::vector<std::pair<Variable, DTensor>> LoraLayer::merged_weights() const {
  const NoRecording no_tape;
  const DTensor delta = scaled_product(a_.value(), b_.value());
  if (!is_quantized()) {
    const DTensor sum = ops::cast(kernel_.value(), delta.dtype()) + delta;
    return {{kernel_, ops::cast(sum, kernel_.dtype())}};
  }
  const auto [values, scale] = quantized_sum(delta);
  return {{kernel_, values}, {kernel_scale_, scale}};
}

void LoraLayer::set_trainable(bool trainable) {
  Layer::set_trainable(trainable);
  if (has_adapter()) kernel_.set_trainable(false);
}

/// Gives the axes that a factor has of the kernel the kernel's layout.
void LoraLayer::follow_kernel(Variable& factor, bool is_a) const {
  const Layout& kernel = kernel_.layout();
  const auto own = static_cast<std::ptrdiff_t>(a_.shape().size()) - 1;
  std::vector<std::vector<int>> axes = kernel.axes();
  if (is_a) {
    axes.erase(axes.begin() + own, axes.end());
    axes.emplace_back();
  } else {
    axes.erase(axes.begin(), axes.begin() + own);
    axes.insert(axes.begin(), std::vector<int>());
  }
  Placement placement = factor.placed() ? factor.placement() : Placement{.shape = factor.shape()};
  placement.layout = Layout::from_axes(kernel.mesh(), std::move(axes));
  factor.place(placement);
}

void LoraLayer::place_weights(const LayoutMap& layouts) {
  Layer::place_weights(layouts);
  if (!has_adapter()) return;
  for (Variable* const factor : {&a_, &b_}) {
    const Placement& placement = factor->placement();
    if (placement.rule < 0 && !placement.use && !placement.slots) {
      follow_kernel(*factor, factor == &a_);
    }
  }
}

void train_adapters_only(Layer& model) {
  std::vector<LoraLayer*> adapted;
  freeze_others(model, adapted);
  for (Variable& weight : model.weights()) weight.set_trainable(false);
  for (const LoraLayer* layer : adapted) {
    for (Variable factor : {layer->a(), layer->b()}) factor.set_trainable(true);
  }
}

Json LoraLayer::with_adapter(Json config) const {
  if (rank_ == 0) return config;
  config["lora_rank"] = rank_;
  // As Keras has it: an integer unless the program gave another number.
  const bool integral = alpha_ == std::floor(alpha_) && std::abs(alpha_) < 1e15;
  config["lora_alpha"] = integral ? Json(static_cast<int64_t>(alpha_)) : Json(alpha_);
  return config;
}

}  // namespace tessera::detail
