#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera::test {

/// Returns a section of golden/keras_optimizers.json: "cases", "schedules".
const Json& keras_optimizers(const std::string& part);

/// The layouts of one weight, its slots and its gradients.
struct WeightLayouts {
  Layout weight;
  Layout gradient;
  std::optional<Layout> slots = std::nullopt;
};

/// Returns distinct layouts for the weights of the golden file, drawn with the seed: any sharding
/// over the mesh, gradients partial or not, slots sharded further or not.
std::vector<WeightLayouts> mixed_weight_layouts(const Mesh& mesh, uint64_t seed);
/// Returns one line that describes them.
std::string to_string(const std::vector<WeightLayouts>& weight_layouts);

/// Returns a tensor in a layout; its partial sums are uneven.
DTensor in_layout(const at::Tensor& full, const Layout& layout);

/// Returns the golden file's weights in these layouts; those in `constrained` stay at least 0.
std::vector<Variable> golden_weights(const std::vector<WeightLayouts>& weight_layouts,
                                     const std::vector<std::string>& constrained = {});
/// Returns the gradients of a step for golden_weights(); `last` replaces the first one's last
/// element.
std::vector<DTensor> golden_gradients(size_t step, const std::vector<WeightLayouts>& weight_layouts,
                                      std::optional<double> last = std::nullopt);

/// Runs the ten steps of one of the "cases". Empty if rates, iterations and weights are Keras'.
std::string wrong_case(const Json& golden, const std::vector<WeightLayouts>& weight_layouts);

/// Runs the steps of a case with gradient_accumulation_steps. Empty if rates, iterations and
/// weights are those of an optimizer without it that gets the mean gradients.
std::string wrong_accumulation(const Json& golden,
                               const std::vector<WeightLayouts>& weight_layouts);

}  // namespace tessera::test
