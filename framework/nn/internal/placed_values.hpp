#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// A value of a layer's computation that a rule may place.
struct ValueSite {
  std::string name;  ///< "input", "input_1", …, "output", …, or one of Layer::value_names()
  int64_t rank = 0;
};

/// The sites of a layer that is built; of one that is not, none.
std::vector<ValueSite> value_sites(const Layer& layer);

/// Where those of a layer's values go that rules place.
class PlacedValues {
 public:
  /// What the rules of LayoutMap::value_rules() say of a layer's sites; null if none is placed.
  /// Throws LayoutError as LayoutMap::find_value.
  static std::shared_ptr<const PlacedValues> find(const Layer& layer, const LayoutMap& rules);

  /// Brings the inputs of a call where they go. One that is the same tensor as another of
  /// `given`, the inputs before any cast, and has no rule of its own, goes along with it.
  void bring_inputs(Inputs& inputs, const Inputs& given) const;
  void bring_outputs(std::vector<DTensor>& outputs) const;
  bool places_output() const { return !outputs_.empty() && outputs_[0]; }
  /// A value that the layer names; as it is if no rule places it.
  DTensor bring(const std::string& name, const DTensor& value) const;

  /// "output (batch, unsharded)" for each that is placed.
  std::vector<std::string> describe() const;

 private:
  struct Place {
    std::string path;  ///< of the value, as comm logs and plans show it
    LayoutMap::ValuePlacement placement;
  };
  static DTensor brought(const DTensor& value, const Place& place);

  std::vector<std::optional<Place>> inputs_, outputs_;
  std::map<std::string, Place> named_;
};

/// Puts a layer's weights and values where the layouts say, and gives the paths of all of them.
/// Throws LayoutError.
std::vector<std::string> place_layers(Layer& layer, const LayoutMap& layouts);

}  // namespace tessera::detail
