#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/pipeline/split_stages.hpp>

using namespace tessera;
using namespace tessera::detail;
using Catch::Contains;

namespace split_stages_test {

using Stages = std::vector<int64_t>;

/// Layers "a", "b", ... with these costs, half of it forward.
std::vector<LayerCost> layers_of(const std::vector<double>& costs) {
  std::vector<LayerCost> layers;
  for (const double cost : costs) {
    layers.push_back(
        {std::string(1, static_cast<char>('a' + layers.size())), {cost / 2, cost / 4, cost / 4}});
  }
  return layers;
}

TEST_CASE("layers are divided so that the longest stage is as short as possible") {
  CHECK(split_stages(layers_of({1, 1, 1, 1}), 2).stage_of == Stages{0, 0, 1, 1});
  CHECK(split_stages(layers_of({4, 1, 1, 1, 1}), 2).stage_of == Stages{0, 1, 1, 1, 1});
  CHECK(split_stages(layers_of({1, 2, 3, 4, 5, 6}), 3).stage_of == Stages{0, 0, 0, 1, 1, 2});
  CHECK(split_stages(layers_of({3}), 1).stage_of == Stages{0});
  // The stages that are not the longest are even too.
  CHECK(split_stages(layers_of({1, 1, 1, 1, 10}), 3).stage_of == Stages{0, 0, 1, 1, 2});
  // Of equal divisions, the first stages are the shortest.
  CHECK(split_stages(layers_of({1, 1, 1}), 2).stage_of == Stages{0, 1, 1});
  CHECK(split_stages(layers_of({0, 0, 0}), 2).stage_of == Stages{0, 1, 1});
  const StageSplit split = split_stages(layers_of({1, 2, 3}), 2);
  CHECK(split.stage_of == Stages{0, 0, 1});
  CHECK(split.costs[0].forward == Approx(1.5));
  CHECK(split.costs[0].input_gradient == Approx(0.75));
  CHECK(split.costs[1].weight_gradient == Approx(0.75));
}

/// Calls `f` with every division of `layers` layers into `stages` stages.
template <class F>
void for_each_division(size_t layers, int64_t stages, Stages& stage_of, F f) {
  if (stage_of.size() == layers) {
    if (stage_of.back() == stages - 1) f(stage_of);
    return;
  }
  const int64_t last = stage_of.empty() ? -1 : stage_of.back();
  for (int64_t stage = std::max<int64_t>(last, 0); stage <= last + 1; ++stage) {
    if (stage >= stages) continue;
    stage_of.push_back(stage);
    for_each_division(layers, stages, stage_of, f);
    stage_of.pop_back();
  }
}

TEST_CASE("no division is better than the one that is chosen") {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const size_t count = 2 + random() % 8;
    const auto stages = static_cast<int64_t>(1 + random() % count);
    std::vector<double> costs;
    for (size_t i = 0; i < count; ++i) costs.push_back(static_cast<double>(random() % 9));
    std::vector<LayerCost> layers = layers_of(costs);
    Stages rules;
    for_each_division(count, stages, rules, [&](const Stages& division) {
      if (random() % 50 != 0) return;
      // A rule for one layer, which some division follows.
      const size_t layer = random() % count;
      layers[layer].stage = division[layer];
      for (size_t i = 0; i < count; ++i) {
        if (i != layer) layers[i].stage.reset();
      }
    });
    const auto figures = [&](const Stages& division) {
      std::vector<double> sums(static_cast<size_t>(stages), 0);
      for (size_t i = 0; i < count; ++i) sums[static_cast<size_t>(division[i])] += costs[i];
      double squares = 0;
      for (const double sum : sums) squares += sum * sum;
      return std::pair(*std::max_element(sums.begin(), sums.end()), squares);
    };
    const Stages chosen = split_stages(layers, stages).stage_of;
    auto best = figures(chosen);
    Stages stage_of;
    for_each_division(count, stages, stage_of, [&](const Stages& division) {
      for (size_t i = 0; i < count; ++i) {
        if (layers[i].stage && *layers[i].stage != division[i]) return;
      }
      best = std::min(best, figures(division));
    });
    CHECK(figures(chosen) == best);
    for (size_t i = 0; i < count; ++i) {
      if (layers[i].stage) CHECK(chosen[i] == *layers[i].stage);
    }
    CHECK(split_stages(layers, stages).stage_of == chosen);
  }
}

TEST_CASE("rules and names put layers into stages") {
  std::vector<LayerCost> layers = layers_of({1, 1, 1, 1});
  layers[0].stage = 0;
  layers[1].stage = 1;
  CHECK(split_stages(layers, 2).stage_of == Stages{0, 1, 1, 1});
  CHECK(split_stages(layers, 2, {"rules"}).stage_of == Stages{0, 1, 1, 1});
  layers[1].stage.reset();
  layers[3].stage = 1;
  CHECK(split_stages(layers, 2).stage_of == Stages{0, 0, 1, 1});
  CHECK(split_stages(layers, 2, {"rules"}).stage_of == Stages{0, 0, 0, 1});
  CHECK(split_stages(layers, 2, {"b"}).stage_of == Stages{0, 1, 1, 1});
  CHECK(split_stages(layers_of({9, 1, 1, 1}), 3, {"b", "d"}).stage_of == Stages{0, 1, 1, 2});
  CHECK(split_stages(layers_of({9, 1}), 1, {}).stage_of == Stages{0, 0});
}

TEST_CASE("divisions that cannot be are refused by name") {
  const auto split = [](const std::vector<LayerCost>& layers, int64_t stages,
                        const std::vector<std::string>& by = {"auto"}) {
    return split_stages(layers, stages, by);
  };
  std::vector<LayerCost> layers = layers_of({1, 1, 1, 1});
  CHECK_THROWS_WITH(split(layers, 5),
                    Contains("at least one layer") && Contains("5 stages, 4 layers"));
  CHECK_THROWS_WITH(split(layers, 0), Contains("0 stages"));
  CHECK_THROWS_WITH(split({}, 1), Contains("0 layers"));
  CHECK_THROWS_WITH(split(layers, 3, {"b"}), Contains("2 for 3 stages"));
  CHECK_THROWS_WITH(split(layers, 2, {"x"}), Contains("names layers") && Contains("\"x\""));
  CHECK_THROWS_WITH(split(layers, 3, {"c", "b"}), Contains("\"b\" after \"c\""));
  CHECK_THROWS_WITH(split(layers, 3, {"b", "b"}), Contains("\"b\" after \"b\""));
  CHECK_THROWS_WITH(split(layers, 2, {"a"}), Contains("without the first"));
  CHECK_THROWS_WITH(split(layers, 2, {"rules"}), Contains("stage 1 of 2 without any"));

  layers[0].stage = 1;
  CHECK_THROWS_WITH(split(layers, 2), Contains("between two rules") && Contains("a on stage 1"));
  CHECK_THROWS_WITH(split(layers, 2, {"b"}),
                    Contains("[pipeline: layer a]") && Contains("1 by a rule, 0 by split"));
  CHECK_THROWS_WITH(split(layers, 2, {"rules"}), Contains("stage 0 of 2 without any"));
  layers[2].stage = 0;
  CHECK_THROWS_WITH(split(layers, 2),
                    Contains("[pipeline: layer c]") && Contains("stage 0 after stage 1 of a"));
  layers[2].stage = 2;
  CHECK_THROWS_WITH(split(layers, 2), Contains("from 0 to 1") && Contains("stage 2"));
  layers = layers_of({1, 1, 1, 1});
  layers[0].stage = 0;
  layers[1].stage = 2;
  CHECK_THROWS_WITH(split(layers, 3), Contains("a on stage 0, b on stage 2"));

  layers = layers_of({1, 1});
  layers[1].cost.forward = -1;
  CHECK_THROWS_WITH(split(layers, 1), Contains("[pipeline: layer b]") && Contains("-1"));
  layers[1].cost.forward = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(split(layers, 1), Contains("finite"));
}

}  // namespace split_stages_test
