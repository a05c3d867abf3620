#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// A value of a layer's call that a layout rule may place.
struct ValueSite {
  std::string name;  ///< "input", "input_1", …, "output", …, or one of Layer::value_names()
  int64_t rank = 0;
};

/// Returns the sites of a built layer; none before build().
std::vector<ValueSite> value_sites(const Layer& layer);

/// The layouts that rules assign to a layer's inputs, outputs and named values.
class PlacedValues {
 public:
  /// Matches the rules of LayoutMap::value_rules() with the layer's sites; null if none matches.
  /// Throws LayoutError as LayoutMap::find_value() does.
  static std::shared_ptr<const PlacedValues> find(const Layer& layer, const LayoutMap& rules);

  /// Reshards the inputs of a call. An input without a rule that was the same tensor as an earlier
  /// one before the cast (`uncast`) takes that one's result, so that no tensor is moved twice.
  void reshard_inputs(Inputs& inputs, const Inputs& uncast) const;
  void reshard_outputs(std::vector<DTensor>& outputs) const;
  bool places_output() const { return !outputs_.empty() && outputs_[0]; }
  /// Reshards the layer's value `name`; returns it unchanged if no rule places it.
  DTensor reshard(const std::string& name, const DTensor& value) const;

  /// Describes each placed value: "output (batch, unsharded)".
  std::vector<std::string> describe() const;

 private:
  struct NamedPlacement {
    std::string path;  ///< the value's path in comm logs and plans
    LayoutMap::ValuePlacement placement;
  };
  static DTensor resharded(const DTensor& value, const NamedPlacement& target);

  std::vector<std::optional<NamedPlacement>> inputs_, outputs_;
  std::map<std::string, NamedPlacement> named_;
};

/// Places the weights and values of a layer and its sublayers; returns the paths of all of them.
/// Throws LayoutError.
std::vector<std::string> place_layers(Layer& layer, const LayoutMap& layouts);

}  // namespace tessera::detail
