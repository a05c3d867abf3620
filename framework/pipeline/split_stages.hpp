#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/pipeline/make_schedule.hpp>

namespace tessera::detail {

/// A layer of a model, in the order in which they are called, and what it costs for a microbatch.
struct LayerCost {
  std::string path;
  StageCost cost;
  std::optional<int64_t> stage = std::nullopt;  ///< stage that a rule names, if one does
};

/// The division of layers into stages.
struct StageSplit {
  std::vector<int64_t> stage_of;  ///< by layer; ascending, each stage has a layer
  std::vector<StageCost> costs;   ///< by stage
};

/// Divides layers into `stages` stages of consecutive layers. `split` is
/// PipelineParallelOptions::split: "auto" makes the longest stage as short as possible, forward and
/// backward pass together; of such divisions it takes the most even one (the least sum of squares),
/// of several the one whose first stages are shortest. "rules" leaves a layer without a rule in the
/// stage of the layer before. Otherwise `split` names the layers with which the second and further
/// stages begin. Layers with a rule are always in its stage. Throws ConfigError if there are fewer
/// layers than stages, rules contradict the order of layers or leave a stage without layers, a name
/// is unknown, or a cost is negative or not finite.
StageSplit split_stages(const std::vector<LayerCost>& layers, int64_t stages,
                        const std::vector<std::string>& split = {"auto"});

}  // namespace tessera::detail
