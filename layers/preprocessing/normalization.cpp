#include <tessera/layers/preprocessing/normalization.hpp>

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <numeric>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/preprocessing/internal/column_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(NormalizationOptions& o, const Visit& visit) {
  visit("mean", o.mean);
  visit("variance", o.variance);
  visit("invert", o.invert);
}

namespace {

constexpr double epsilon = 1e-7;
constexpr int64_t batch_rows = 1024;

/// Mean and biased variance over some axes of batched data, updated batch by batch in float64.
class RunningMoments {
 public:
  /// `axes` are not reduced; `shape` holds their extents.
  RunningMoments(const std::vector<int64_t>& axes, const Shape& shape)
      : mean(at::zeros(shape, at::kDouble)), variance(at::zeros(shape, at::kDouble)), axes_(axes) {}

  void add(const at::Tensor& batch) {
    const at::Tensor x = batch.to(at::kDouble);
    std::vector<int64_t> reduced;
    for (int64_t a = 0; a < x.dim(); ++a) {
      if (std::find(axes_.begin(), axes_.end(), a) == axes_.end()) reduced.push_back(a);
    }
    // ATen would reduce over all axes if given none.
    const at::Tensor batch_mean = reduced.empty() ? x.clone() : x.mean(reduced);
    const at::Tensor batch_variance =
        reduced.empty() ? at::zeros_like(x) : x.var(reduced, /*unbiased=*/false);
    double count = 1;
    for (const int64_t axis : reduced) count *= double(x.size(axis));
    join(count, batch_mean, batch_variance);
  }
  /// Merges the moments of `count` other numbers.
  void join(double count, const at::Tensor& other_mean, const at::Tensor& other_variance) {
    if (count == 0) return;
    if (count_ == 0) {
      mean = other_mean;
      variance = other_variance;
      count_ = count;
      return;
    }
    const double share = count / (count_ + count);
    const at::Tensor between = (other_mean - mean).square() * (share * (1 - share));
    variance = variance * (1 - share) + other_variance * share + between;
    mean = mean * (1 - share) + other_mean * share;
    count_ += count;
  }
  double count() const { return count_; }
  const std::vector<int64_t>& axes() const { return axes_; }

  at::Tensor mean, variance;

 private:
  std::vector<int64_t> axes_;
  double count_ = 0;
};

/// numbers_text() writes float64 numbers so that numbers_of() reads exactly the same ones.
std::string numbers_text(const at::Tensor& numbers) {
  std::string text;
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    char digits[32];
    const double number = numbers.const_data_ptr<double>()[i];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
    text += ' ';
  }
  return text;
}
at::Tensor numbers_of(const std::string& text) {
  std::vector<double> numbers;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end; ++at) {
    at = std::from_chars(at, end, numbers.emplace_back()).ptr;
  }
  at::Tensor tensor = at::empty({std::ssize(numbers)}, at::kDouble);
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data_ptr<double>());
  return tensor;
}

class NormalizationLayer final
    : public LayerOf<NormalizationLayer, NormalizationOptions, ColumnLayer> {
 public:
  static constexpr const char* keras_name = "Normalization";
  explicit NormalizationLayer(const NormalizationOptions& options) : LayerOf(options) {
    check_options();
  }
  Json config() const override {
    return layer_config(*this, {{"axis", arguments_.axis}}, arguments_);
  }
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

  bool learns() const override { return !arguments_.mean.defined(); }
  void learn(const at::Tensor& column) override { adapt(column); }
  Json learned() const override {
    return {{"mean", ArrayOption(mean_.value().full()).json()},
            {"variance", ArrayOption(variance_.value().full()).json()}};
  }
  void adapt(const at::Tensor& data);
  void adapt(const Dataset& data);

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  void check_options() const;
  /// Returns `axis` as non-negative numbers, sorted.
  std::vector<int64_t> retained_axes(int64_t rank) const;
  /// Returns fixed or learned statistics, shaped to broadcast to x.
  DTensor statistics(const ArrayOption& fixed, const Variable& learned, const DTensor& x) const;
  /// Checks the shape of the data, builds the layer, and returns empty moments.
  RunningMoments start_adapting(Shape shape);
  void finish_adapting(const RunningMoments& moments);

  Shape built_shape_;
  Variable mean_, variance_;
};

const RegisteredLayer registered_normalization("Normalization", [](JsonObject& config) {
  auto options = layer_options_from<NormalizationOptions>(config);
  if (config.has("axis")) {
    const auto axis = config.take_optional<Json>("axis");
    options.axis = axis ? take_axes(config, "axis") : std::vector<int64_t>{};
  }
  return Normalization(options);
});

void NormalizationLayer::check_options() const {
  const ArrayOption& mean = arguments_.mean;
  const ArrayOption& variance = arguments_.variance;
  if (mean.defined() != variance.defined()) {
    throw ConfigError(where(), "mean and variance are given together",
                      mean.defined() ? "only mean" : "only variance",
                      "give both, or neither and call adapt()");
  }
  if (!mean.defined()) return;
  if (mean.shape() != variance.shape() || mean.shape().size() > arguments_.axis.size()) {
    throw ConfigError(where(),
                      str("mean and variance have one shape of at most ", arguments_.axis.size(),
                          " axes, as many as `axis`"),
                      to_string(mean.shape()) + " and " + to_string(variance.shape()),
                      "give one number for each index of `axis`");
  }
}

std::vector<int64_t> NormalizationLayer::retained_axes(int64_t rank) const {
  std::vector<int64_t> axes;
  for (const int64_t axis : arguments_.axis) {
    axes.push_back(normalize_axis(axis, rank, where()));
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) == axes.end()) return axes;
  throw ShapeError(where(), "axis names each axis once", to_string(arguments_.axis),
                   "leave out the second");
}

Shape NormalizationLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  if (built() && built_shape_.size() != input.size()) {
    throw ShapeError(where(), str("the input has ", built_shape_.size(), " axes, as when built"),
                     to_string(input), "pass inputs of that rank");
  }
  const auto mean_shape = arguments_.mean.defined() ? arguments_.mean.shape() : Shape{};
  const auto axes = retained_axes(static_cast<int64_t>(input.size()));
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(axes[k]);
    if (input[axis] < 0) {
      throw ShapeError(where(), str("axis ", axis, " has a known extent"), to_string(input),
                       "normalize over it, or give its extent");
    }
    // Statistics from the options align with the last retained axes.
    const size_t missing = axes.size() - mean_shape.size();
    const bool fits =
        k < missing || mean_shape[k - missing] == 1 || mean_shape[k - missing] == input[axis];
    if (!fits || (built() && built_shape_[axis] != input[axis])) {
      throw ShapeError(
          where(),
          str("axis ", axis, " has ", fits ? built_shape_[axis] : mean_shape[k - missing],
              " indices, as ", fits ? "when built" : "mean and variance have"),
          to_string(input), "pass inputs of that size");
    }
  }
  return input;
}

void NormalizationLayer::make_weights(const Shapes& inputs) {
  built_shape_ = inputs[0];
  if (arguments_.mean.defined()) return;
  Shape shape;
  for (const int64_t axis : retained_axes(static_cast<int64_t>(built_shape_.size()))) {
    shape.push_back(built_shape_[static_cast<size_t>(axis)]);
  }
  mean_ = add_weight("mean", shape, "zeros", {.trainable = false});
  variance_ = add_weight("variance", shape, "ones", {.trainable = false});
  // Keras has this weight, though it never counts; weight files and summaries agree with Keras'.
  add_weight("count", {}, "zeros", {.trainable = false, .dtype = at::kLong});
}

DTensor NormalizationLayer::statistics(const ArrayOption& fixed, const Variable& learned,
                                       const DTensor& x) const {
  const auto axes = retained_axes(x.rank());
  const Shape extents = learned.defined() ? learned.shape() : fixed.shape();
  Shape shape(x.shape().size(), 1);
  for (size_t i = 1; i <= extents.size(); ++i) {
    shape[static_cast<size_t>(axes[axes.size() - i])] = extents[extents.size() - i];
  }
  if (learned.defined()) return ops::reshape(read(learned), shape);
  return pack(fixed.tensor().reshape(shape).to(x.dtype()), Layout::replicated(x.mesh(), x.rank()));
}

DTensor NormalizationLayer::call(const Inputs& inputs, const CallContext&) {
  const at::ScalarType dtype = dtype_policy().compute;
  const DTensor x = inputs[0].dtype() == dtype ? inputs[0] : ops::cast(inputs[0], dtype);
  const DTensor mean = statistics(arguments_.mean, mean_, x);
  const DTensor deviation = ops::clip(ops::sqrt(statistics(arguments_.variance, variance_, x)),
                                      epsilon, std::numeric_limits<double>::infinity());
  return arguments_.invert ? x * deviation + mean : (x - mean) / deviation;
}

RunningMoments NormalizationLayer::start_adapting(Shape shape) {
  if (arguments_.mean.defined()) {
    throw StateError(where(), "adapt() is for a layer without mean and variance",
                     "options that give them", "leave them out");
  }
  if (shape.empty() || numel(shape) == 0) {
    throw ConfigError(where(), "adapt() takes at least one row", to_string(shape), "give it data");
  }
  const auto axes = retained_axes(static_cast<int64_t>(shape.size()));
  if (axes.empty() || axes[0] != 0) shape[0] = -1;
  if (built()) output_shape({shape});
  build({shape});
  return {axes, mean_.shape()};
}

void NormalizationLayer::finish_adapting(const RunningMoments& moments) {
  mean_.assign(pack(moments.mean.to(mean_.dtype()), mean_.layout()));
  variance_.assign(pack(moments.variance.to(variance_.dtype()), variance_.layout()));
}

void NormalizationLayer::adapt(const at::Tensor& data) {
  RunningMoments moments = start_adapting(data.sizes().vec());
  moments.add(data.cpu());
  finish_adapting(moments);
}

/// Adds these rows of a dataset to `moments`.
void add_rows(RunningMoments& moments, const Dataset& data, Interval rows, int64_t batch_size) {
  for (int64_t first = rows.lo; first < rows.hi; first += batch_size) {
    std::vector<int64_t> numbers(static_cast<size_t>(std::min(batch_size, rows.hi - first)));
    std::iota(numbers.begin(), numbers.end(), first);
    moments.add(data.get(numbers).x.at(0));
  }
}

/// Merges the moments of all processes' data, in rank order. Collective.
void join_all(RunningMoments& moments, const Mesh& mesh, const std::function<void()>& read) {
  const Shape shape = moments.mean.sizes().vec();
  const std::vector<std::string> all = gather_texts(mesh, "Normalization::adapt", [&] {
    read();
    return numbers_text(at::cat({at::scalar_tensor(moments.count(), at::kDouble).view(1),
                                 moments.mean.flatten(), moments.variance.flatten()}));
  });
  moments = {moments.axes(), shape};
  for (const std::string& text : all) {
    const at::Tensor numbers = numbers_of(text);
    const int64_t size = numel(shape);
    moments.join(numbers[0].item<double>(), numbers.slice(0, 1, 1 + size).view(shape),
                 numbers.slice(0, 1 + size).view(shape));
  }
}

void NormalizationLayer::adapt(const Dataset& data) {
  Shape shape = data.input_shapes().at(0);
  shape.insert(shape.begin(), data.size());
  RunningMoments moments = start_adapting(shape);
  const std::vector<int64_t> axes = retained_axes(static_cast<int64_t>(shape.size()));
  const Mesh& mesh = mean_.layout().mesh();
  if (!axes.empty() && axes[0] == 0) {
    // Each row has its own moments, so reading a share of the rows is not enough.
    add_rows(moments, data, {0, data.size()}, data.size());
  } else if (!mesh.communicator()) {
    add_rows(moments, data, {0, data.size()}, batch_rows);
  } else {
    const Communicator& all = *mesh.communicator();
    const Interval shard = shard_interval(data.size(), all.size(), all.rank());
    join_all(moments, mesh, [&] { add_rows(moments, data, shard, batch_rows); });
  }
  finish_adapting(moments);
}

}  // namespace

Normalization::Normalization(const NormalizationOptions& options)
    : LayerHandle(std::make_shared<NormalizationLayer>(options)) {}

void Normalization::adapt(const at::Tensor& data) const {
  static_cast<NormalizationLayer&>(*layer()).adapt(data);
}

void Normalization::adapt(const DatasetHandle& data) const {
  static_cast<NormalizationLayer&>(*layer()).adapt(*data);
}

}  // namespace tessera
