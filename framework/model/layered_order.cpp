#include <algorithm>
#include <cstdint>
#include <utility>

#include <tessera/framework/model/layered_items.hpp>

namespace tessera {
namespace {

constexpr int order_sweeps = 8;

/// Positions of the items in their layers.
std::vector<size_t> ranks_of(const LayerItems& all) {
  std::vector<size_t> ranks(all.items.size());
  for (const auto& layer : all.layers) {
    for (size_t i = 0; i < layer.size(); ++i) ranks[static_cast<size_t>(layer[i])] = i;
  }
  return ranks;
}

int64_t crossings(const LayerItems& all) {
  const std::vector<size_t> ranks = ranks_of(all);
  int64_t count = 0;
  for (const auto& layer : all.layers) {
    std::vector<size_t> ends;
    for (const int index : layer) {
      std::vector<size_t> own;
      for (const auto& link : all.items[static_cast<size_t>(index)].below) {
        own.push_back(ranks[static_cast<size_t>(link.item)]);
      }
      for (const size_t end : own) {
        count += std::count_if(ends.begin(), ends.end(), [end](size_t e) { return e > end; });
      }
      ends.insert(ends.end(), own.begin(), own.end());
    }
  }
  return count;
}

/// Where an item's neighbours above (or below) lie on average, from 0 (left) to 1; `own` for none.
double barycentre(const LayerItems& all, const std::vector<size_t>& ranks, int index, bool above,
                  double own) {
  const LayerItem& item = all.items[static_cast<size_t>(index)];
  const auto& links = above ? item.above : item.below;
  if (links.empty()) return own;
  double sum = 0;
  for (const auto& link : links) {
    const auto neighbour = static_cast<size_t>(link.item);
    const auto layer = static_cast<size_t>(all.items[neighbour].layer);
    sum += (static_cast<double>(ranks[neighbour]) + 0.5) /
           static_cast<double>(all.layers[layer].size());
  }
  return sum / static_cast<double>(links.size());
}

void sort_layer(LayerItems& all, size_t layer, bool above) {
  const std::vector<size_t> ranks = ranks_of(all);
  std::vector<int>& order = all.layers[layer];
  std::vector<std::pair<double, int>> keyed;
  for (size_t i = 0; i < order.size(); ++i) {
    const double own = (static_cast<double>(i) + 0.5) / static_cast<double>(order.size());
    keyed.emplace_back(barycentre(all, ranks, order[i], above, own), order[i]);
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < order.size(); ++i) order[i] = keyed[i].second;
}

}  // namespace

void order_items(LayerItems& all) {
  auto best = all.layers;
  int64_t fewest = crossings(all);
  for (int sweep = 0; sweep < order_sweeps && fewest > 0; ++sweep) {
    const bool down = sweep % 2 == 0;
    for (size_t i = 0; i < all.layers.size(); ++i) {
      sort_layer(all, down ? i : all.layers.size() - 1 - i, down);
    }
    const int64_t count = crossings(all);
    if (count >= fewest) continue;
    fewest = count;
    best = all.layers;
  }
  all.layers = best;
}

}  // namespace tessera
