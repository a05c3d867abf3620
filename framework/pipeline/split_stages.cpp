#include <tessera/framework/pipeline/split_stages.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

std::string layer_where(const LayerCost& layer) {
  return "pipeline: layer " + one_line(layer.path);
}

void check_layers(const std::vector<LayerCost>& layers, int64_t stages) {
  if (stages < 1 || static_cast<int64_t>(layers.size()) < stages) {
    throw ConfigError("pipeline", "each stage has at least one layer",
                      str(stages, " stages, ", layers.size(), " layers"),
                      "take fewer stages or chunks");
  }
  const LayerCost* before = nullptr;
  for (const LayerCost& layer : layers) {
    for (const double cost :
         {layer.cost.forward, layer.cost.input_gradient, layer.cost.weight_gradient}) {
      if (std::isfinite(cost) && cost >= 0) continue;
      throw ConfigError(layer_where(layer), "costs are finite and not negative", str(cost), "");
    }
    if (!layer.stage) continue;
    if (*layer.stage < 0 || *layer.stage >= stages) {
      throw ConfigError(layer_where(layer), str("stages are from 0 to ", stages - 1),
                        str("stage ", *layer.stage), "correct the rule");
    }
    if (before && *before->stage > *layer.stage) {
      throw ConfigError(layer_where(layer), "stages follow the order of layers",
                        str("stage ", *layer.stage, " after stage ", *before->stage, " of ",
                            one_line(before->path)),
                        "correct one of the two rules");
    }
    before = &layer;
  }
}

/// Whether a layer may be in a stage.
bool allows(const LayerCost& layer, int64_t stage) { return !layer.stage || *layer.stage == stage; }

/// Divisions of layers into stages with the least total of a cost of stages.
class Divisions {
 public:
  /// `combine` adds a stage's cost to that of the stages after it.
  template <class Cost, class Combine>
  Divisions(const std::vector<LayerCost>& layers, int64_t stages, Cost cost, Combine combine)
      : best_(static_cast<size_t>(stages) + 1, std::vector<double>(layers.size() + 1, never)) {
    best_.back().back() = combine(0, 0);
    for (int64_t stage = stages - 1; stage >= 0; --stage) {
      const auto& after = best_[static_cast<size_t>(stage) + 1];
      for (size_t begin = 0; begin < layers.size(); ++begin) {
        double& best = best_[static_cast<size_t>(stage)][begin];
        for (size_t end = begin + 1; end <= layers.size(); ++end) {
          if (!allows(layers[end - 1], stage)) break;
          if (after[end] == never) continue;
          best = std::min(best, combine(cost(begin, end), after[end]));
        }
      }
    }
    for (size_t stage = 0, begin = 0; stage < static_cast<size_t>(stages); ++stage) {
      if (best_[stage][begin] == never) break;
      for (size_t end = begin + 1; end <= layers.size(); ++end) {
        const double after = best_[stage + 1][end];
        if (after == never || combine(cost(begin, end), after) != best_[stage][begin]) continue;
        ends_.push_back(end);
        begin = end;
        break;
      }
    }
  }

  bool possible() const { return best_[0][0] != never; }
  double least() const { return best_[0][0]; }
  /// Ends of the stages of the first of the best divisions.
  const std::vector<size_t>& ends() const { return ends_; }

 private:
  /// By first stage and first layer: the least total of the rest.
  std::vector<std::vector<double>> best_;
  std::vector<size_t> ends_;
};

std::vector<size_t> balanced_ends(const std::vector<LayerCost>& layers, int64_t stages) {
  std::vector<double> sums = {0};
  for (const LayerCost& layer : layers) {
    sums.push_back(sums.back() + stage_time(layer.cost));
  }
  const auto cost = [&](size_t begin, size_t end) { return sums[end] - sums[begin]; };
  const Divisions shortest(layers, stages, cost,
                           [](double stage, double rest) { return std::max(stage, rest); });
  if (!shortest.possible()) return {};
  const double longest = shortest.least();
  const auto square = [&](size_t begin, size_t end) {
    const double sum = cost(begin, end);
    return sum > longest ? never : sum * sum;
  };
  return Divisions(layers, stages, square, [](double stage, double rest) { return stage + rest; })
      .ends();
}

/// The stages of a division, by layer, from the ends of the stages.
std::vector<int64_t> stages_from(const std::vector<size_t>& ends, size_t layers) {
  std::vector<int64_t> stage_of;
  for (size_t layer = 0, stage = 0; layer < layers; ++layer) {
    if (layer == ends[stage]) ++stage;
    stage_of.push_back(static_cast<int64_t>(stage));
  }
  return stage_of;
}

std::vector<int64_t> stages_by_rules(const std::vector<LayerCost>& layers) {
  std::vector<int64_t> stage_of;
  int64_t stage = 0;
  for (const LayerCost& layer : layers) {
    stage = layer.stage.value_or(stage);
    stage_of.push_back(stage);
  }
  return stage_of;
}

std::vector<int64_t> stages_by_names(const std::vector<LayerCost>& layers, int64_t stages,
                                     const std::vector<std::string>& names) {
  if (static_cast<int64_t>(names.size()) != stages - 1) {
    throw ConfigError("pipeline",
                      str("split names the layers with which the stages but the first "
                          "begin, ",
                          stages - 1, " for ", stages, " stages"),
                      names.empty() ? "none" : quoted_list(names, 8),
                      "name one layer for each stage but the first");
  }
  std::vector<std::string> paths;
  for (const LayerCost& layer : layers) paths.push_back(layer.path);
  std::vector<int64_t> stage_of(layers.size(), 0);
  size_t before = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto at = std::find(paths.begin(), paths.end(), names[i]);
    if (at == paths.end()) {
      throw ConfigError("pipeline", "split names layers of the model", in_quotes(names[i]),
                        suggestion(names[i], paths));
    }
    const auto begin = static_cast<size_t>(at - paths.begin());
    if (begin <= before) {
      throw ConfigError("pipeline",
                        "split names layers in the order of the model, without the first",
                        in_quotes(names[i]) + " after " + in_quotes(paths[before]),
                        "name the layer with which each stage but the first begins");
    }
    std::fill(stage_of.begin() + static_cast<std::ptrdiff_t>(begin), stage_of.end(),
              static_cast<int64_t>(i + 1));
    before = begin;
  }
  return stage_of;
}

/// Throws ConfigError for a stage without layers and for a layer with a rule for another stage.
void check_division(const std::vector<LayerCost>& layers, const std::vector<int64_t>& stage_of,
                    int64_t stages) {
  for (int64_t stage = 0; stage < stages; ++stage) {
    if (std::find(stage_of.begin(), stage_of.end(), stage) != stage_of.end()) continue;
    throw ConfigError("pipeline", "each stage has at least one layer",
                      str("stage ", stage, " of ", stages, " without any"),
                      "correct the rules that name a stage, or take fewer stages");
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    if (allows(layers[i], stage_of[i])) continue;
    throw ConfigError(layer_where(layers[i]), "rules and split agree on a layer's stage",
                      str("stage ", *layers[i].stage, " by a rule, ", stage_of[i], " by split"),
                      "correct one of the two");
  }
}

std::string pinned_layers(const std::vector<LayerCost>& layers) {
  std::vector<std::string> pinned;
  for (const LayerCost& layer : layers) {
    if (layer.stage) pinned.push_back(str(one_line(layer.path), " on stage ", *layer.stage));
  }
  if (pinned.size() > 8) pinned.resize(8);
  return join(pinned, ", ");
}

}  // namespace

StageSplit split_stages(const std::vector<LayerCost>& layers, int64_t stages,
                        const std::vector<std::string>& split) {
  check_layers(layers, stages);
  StageSplit result;
  if (split == std::vector<std::string>{"auto"}) {
    const std::vector<size_t> ends = balanced_ends(layers, stages);
    if (ends.empty()) {
      throw ConfigError("pipeline",
                        "between two rules that name stages there is a layer for each stage",
                        pinned_layers(layers), "correct the rules, or take fewer stages");
    }
    result.stage_of = stages_from(ends, layers.size());
  } else if (split == std::vector<std::string>{"rules"}) {
    result.stage_of = stages_by_rules(layers);
  } else {
    result.stage_of = stages_by_names(layers, stages, split);
  }
  check_division(layers, result.stage_of, stages);
  result.costs.assign(static_cast<size_t>(stages), {0, 0, 0});
  for (size_t i = 0; i < layers.size(); ++i) {
    StageCost& sum = result.costs[static_cast<size_t>(result.stage_of[i])];
    sum.forward += layers[i].cost.forward;
    sum.input_gradient += layers[i].cost.input_gradient;
    sum.weight_gradient += layers[i].cost.weight_gradient;
  }
  return result;
}

}  // namespace tessera::detail
