#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/layers/internal/cell_steps.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/recurrent/rnn.hpp>

namespace tessera {

using namespace detail;

namespace {

class StackedRNNCellsLayer final : public LayerOf<StackedRNNCellsLayer, LayerOptions, RNNCell> {
 public:
  static constexpr const char* keras_name = "StackedRNNCells";
  StackedRNNCellsLayer(const std::vector<LayerHandle>& cells, const LayerOptions& options);
  Json config() const override;
  bool can_be_replayed() const override;
  std::vector<int64_t> state_sizes() const override;
  int64_t output_size() const override { return cells_.back()->output_size(); }
  StepFunction begin(const Shape& inputs, const CallContext& context) override;

 protected:
  void make_weights(const Shapes& inputs) override;
  void check_inputs(const Shape& inputs) const override;
  std::vector<DTensor> step(const DTensor& inputs, const std::vector<DTensor>& states,
                            const CallContext& context) override {
    return begin(inputs.shape(), context)(inputs, states);
  }

 private:
  std::vector<RNNCell*> cells_;  ///< owned as sublayers
};

const RegisteredLayer registered_stacked_rnn_cells("StackedRNNCells", [](JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  const auto list = config.take<std::vector<Json>>("cells");
  const JsonPath path = config.path().key("cells");
  std::vector<LayerHandle> cells;
  for (const Json& cell : list) cells.push_back(layer_from_config(cell, path.index(cells.size())));
  return StackedRNNCells(cells, options);
});

StackedRNNCellsLayer::StackedRNNCellsLayer(const std::vector<LayerHandle>& cells,
                                           const LayerOptions& options)
    : LayerOf(options) {
  const std::string name = "StackedRNNCells " + options.name;
  if (cells.empty()) {
    throw ConfigError(name, "there is at least one cell", "no cells", "pass a list of cells");
  }
  for (const LayerHandle& cell : cells) {
    cells_.push_back(&cell_of(cell, name));
    track(cell);
  }
}

Json StackedRNNCellsLayer::config() const {
  Json json = LayerOf::config();
  json["cells"] = Json::array();
  for (const RNNCell* cell : cells_) json["cells"].push_back(layer_json(*cell));
  return json;
}

bool StackedRNNCellsLayer::can_be_replayed() const {
  return std::all_of(cells_.begin(), cells_.end(),
                     [](const RNNCell* cell) { return cell->can_be_replayed(); });
}

std::vector<int64_t> StackedRNNCellsLayer::state_sizes() const {
  std::vector<int64_t> sizes;
  for (const RNNCell* cell : cells_) {
    for (const int64_t size : cell->state_sizes()) sizes.push_back(size);
  }
  return sizes;
}

void StackedRNNCellsLayer::check_inputs(const Shape& inputs) const {
  // Throws for inputs that the first cell does not take.
  cells_[0]->output_shapes(cell_inputs(*cells_[0], inputs));
}

void StackedRNNCellsLayer::make_weights(const Shapes& inputs) {
  Shape below = inputs[0];
  for (RNNCell* cell : cells_) {
    cell->build(cell_inputs(*cell, below));
    below = {below[0], cell->output_size()};
  }
}

RNNCell::StepFunction StackedRNNCellsLayer::begin(const Shape& inputs, const CallContext& context) {
  std::vector<std::pair<size_t, StepFunction>> steps;
  Shape below = inputs;
  for (RNNCell* cell : cells_) {
    steps.emplace_back(cell->state_sizes().size(), cell_steps(*cell, below, context));
    below = {below[0], cell->output_size()};
  }
  return [steps](const DTensor& x, const std::vector<DTensor>& states) {
    std::vector<DTensor> results = {x};
    auto state = states.begin();
    for (const auto& [count, step] : steps) {
      const auto end = state + static_cast<int64_t>(count);
      const std::vector<DTensor> next = step(results[0], {state, end});
      results[0] = next[0];
      results.insert(results.end(), next.begin() + 1, next.end());
      state = end;
    }
    return results;
  };
}

}  // namespace

StackedRNNCells::StackedRNNCells(const std::vector<LayerHandle>& cells, const LayerOptions& options)
    : LayerHandle(make_layer<StackedRNNCellsLayer>(cells, options)) {}

}  // namespace tessera
