#include <tessera/layers/preprocessing/discretization.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/preprocessing/internal/category_output.hpp>
#include <tessera/layers/preprocessing/internal/column_layer.hpp>
#include <tessera/layers/preprocessing/internal/quantile_summary.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(DiscretizationOptions& o, const Visit& visit) {
  visit("bin_boundaries", o.bin_boundaries);
  visit("num_bins", o.num_bins);
  visit("epsilon", o.epsilon);
  visit("output_mode", o.output_mode);
  visit("sparse", o.sparse);
}

namespace {

constexpr int64_t rows_at_a_time = 1024;
/// Batch size of Keras' FeatureSpace.adapt(), which the learned boundaries depend on.
constexpr int64_t column_batch = 32;

class DiscretizationLayer final
    : public LayerOf<DiscretizationLayer, DiscretizationOptions, ColumnLayer> {
 public:
  static constexpr const char* keras_name = "Discretization";
  explicit DiscretizationLayer(const DiscretizationOptions& options);
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override {
    return encoded_shape(where(), single_input(inputs), arguments_.output_mode, bins());
  }
  bool learns() const override { return arguments_.num_bins.has_value(); }
  bool ready() const override { return !learns() || !boundaries().empty(); }
  void learn(const at::Tensor& column) override;
  int64_t categories() const override { return arguments_.num_bins.value_or(bins()); }

  void reset_state();
  void update_state(const at::Tensor& data);
  void finalize_state();
  /// Returns the boundaries, given or learned.
  const std::vector<double>& boundaries() const { return arguments_.bin_boundaries; }
  /// Restores boundaries that a layer with the same options learned.
  void set_boundaries(const std::vector<double>& boundaries);

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;
  at::ScalarType symbolic_dtype(const Shapes&) const override { return output_dtype(); }

 private:
  void check_options() const;
  int64_t bins() const {
    return ready() ? static_cast<int64_t>(boundaries().size()) + 1 : *arguments_.num_bins;
  }
  at::ScalarType output_dtype() const {
    return arguments_.output_mode == "int" ? at::kInt : dtype_policy().compute;
  }

  QuantileSummary summary_;
};

const RegisteredLayer registered_discretization("Discretization", [](JsonObject& config) {
  auto options = layer_options_from<DiscretizationOptions>(config);
  if (!options.num_bins) return Discretization(options);
  const std::vector<double> learned = std::exchange(options.bin_boundaries, {});
  const Discretization layer(options);
  if (!learned.empty()) {
    static_cast<DiscretizationLayer&>(*layer.layer()).set_boundaries(learned);
  }
  return layer;
});

void check_boundaries(const std::string& where, const std::vector<double>& boundaries) {
  const bool numbers =
      std::none_of(boundaries.begin(), boundaries.end(), [](double b) { return std::isnan(b); });
  if (numbers && std::is_sorted(boundaries.begin(), boundaries.end())) return;
  throw ConfigError(where, "bin_boundaries ascend", Json(boundaries).dump(), "sort them");
}

DiscretizationLayer::DiscretizationLayer(const DiscretizationOptions& options)
    : LayerOf(options), summary_(options.epsilon) {
  check_options();
}

void DiscretizationLayer::check_options() const {
  check_output_mode(where(), arguments_.output_mode, {"int", "one_hot", "multi_hot", "count"},
                    arguments_.sparse);
  if (learns() != boundaries().empty()) {
    throw ConfigError(where(), "bin_boundaries or num_bins is given", learns() ? "both" : "neither",
                      "give the boundaries, or num_bins and call adapt()");
  }
  const int64_t bins = arguments_.num_bins.value_or(1);
  if (bins < 1 || bins > INT32_MAX) {
    throw ConfigError(where(), str("num_bins is from 1 to ", INT32_MAX), str(bins),
                      "give the number of bins");
  }
  if (!(arguments_.epsilon > 1e-6 && arguments_.epsilon < 1)) {
    throw ConfigError(where(), "epsilon is between 1e-6 and 1", str(arguments_.epsilon),
                      "leave it out for 0.01");
  }
  check_boundaries(where(), boundaries());
}

Json DiscretizationLayer::config() const {
  Json json = LayerOf::config();
  // Keras' class takes no such argument.
  json.erase("trainable");
  return json;
}

void DiscretizationLayer::set_boundaries(const std::vector<double>& boundaries) {
  check_boundaries(where(), boundaries);
  arguments_.bin_boundaries = boundaries;
}

DTensor DiscretizationLayer::call(const Inputs& inputs, const CallContext&) {
  if (!ready()) {
    throw StateError(where(), "the boundaries are known", "none",
                     "call adapt(), or give `bin_boundaries`");
  }
  const bool floating = at::isFloatingType(inputs[0].dtype());
  const DTensor x = floating ? inputs[0] : ops::cast(inputs[0], dtype_policy().compute);
  at::Tensor sorted = at::empty({static_cast<int64_t>(boundaries().size())}, at::kDouble);
  std::copy(boundaries().begin(), boundaries().end(), sorted.mutable_data_ptr<double>());
  const DTensor bin_edges = pack(sorted.to(x.dtype()), Layout::replicated(x.mesh(), 1));
  return encoded(ops::searchsorted(bin_edges, x, /*right=*/true), arguments_.output_mode, bins(),
                 output_dtype());
}

void DiscretizationLayer::reset_state() {
  if (!learns()) {
    throw StateError(where(), "adapt() is for a layer with num_bins", "bin_boundaries",
                     "give num_bins instead");
  }
  summary_ = QuantileSummary(arguments_.epsilon);
}

void DiscretizationLayer::update_state(const at::Tensor& data) { summary_.add(data.cpu()); }

void DiscretizationLayer::finalize_state() {
  if (summary_.empty()) {
    throw ConfigError(where(), "adapt() takes at least one value", "none", "give it data");
  }
  set_boundaries(summary_.boundaries(*arguments_.num_bins));
}

void DiscretizationLayer::learn(const at::Tensor& column) {
  reset_state();
  for (const at::Tensor& batch : column.split(column_batch)) update_state(batch);
  finalize_state();
}

DiscretizationLayer& layer_of(const Discretization& handle) {
  return static_cast<DiscretizationLayer&>(*handle.layer());
}

}  // namespace

Discretization::Discretization(const DiscretizationOptions& options)
    : LayerHandle(std::make_shared<DiscretizationLayer>(options)) {}

void Discretization::adapt(const at::Tensor& data) const {
  reset_state();
  update_state(data);
  finalize_state();
}

void Discretization::adapt(const DatasetHandle& data) const {
  reset_state();
  for (int64_t first = 0; first < data->size(); first += rows_at_a_time) {
    std::vector<int64_t> rows(static_cast<size_t>(std::min(rows_at_a_time, data->size() - first)));
    std::iota(rows.begin(), rows.end(), first);
    update_state(data->get(rows).x.at(0));
  }
  finalize_state();
}

void Discretization::reset_state() const { layer_of(*this).reset_state(); }
void Discretization::update_state(const at::Tensor& data) const {
  layer_of(*this).update_state(data);
}
void Discretization::finalize_state() const { layer_of(*this).finalize_state(); }

const std::vector<double>& Discretization::bin_boundaries() const {
  return layer_of(*this).boundaries();
}

}  // namespace tessera
