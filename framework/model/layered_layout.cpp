#include <tessera/framework/model/layered_layout.hpp>

#include <algorithm>
#include <cmath>

#include <tessera/framework/model/layered_items.hpp>

namespace tessera {
namespace {

constexpr double box_gap = 28, lane_gap = 14;
constexpr double least_layer_gap = 34, max_layer_gap = 90;
constexpr int sweeps = 80;

/// Sum and total weight of the places where an item's links would be straight. Lanes weigh more,
/// so that long edges do not wind.
struct Wish {
  double sum = 0;
  double weight = 0;

  void add(const LayerItems& all, const LayerItem& item,
           const std::vector<LayerItem::Link>& links) {
    for (const auto& link : links) {
      const LayerItem& other = all.items[static_cast<size_t>(link.item)];
      const int lanes = (item.box < 0 ? 1 : 0) + (other.box < 0 ? 1 : 0);
      const double w = lanes == 2 ? 8 : lanes == 1 ? 2 : 1;
      sum += w * (other.x + link.shift);
      weight += w;
    }
  }
};

double separation(const LayerItem& left, const LayerItem& right) {
  const double gap = left.box >= 0 && right.box >= 0 ? box_gap : lane_gap;
  return (left.width + right.width) / 2 + gap;
}

/// Moves the items of a layer to the places nearest to their wishes, in the sense of least squares,
/// that keep their order and distance (isotonic regression by pooling).
void settle(LayerItems& all, const std::vector<int>& layer, const std::vector<Wish>& wishes) {
  struct Pool {
    double sum, weight;
    size_t count;
  };
  std::vector<Pool> pools;
  std::vector<double> offsets;
  for (size_t i = 0; i < layer.size(); ++i) {
    const LayerItem& item = all.items[static_cast<size_t>(layer[i])];
    const LayerItem& left = all.items[static_cast<size_t>(layer[i == 0 ? 0 : i - 1])];
    offsets.push_back(i == 0 ? 0 : offsets.back() + separation(left, item));
    const Wish& wish = wishes[i];
    pools.push_back({wish.sum - offsets[i] * wish.weight, wish.weight, 1});
    while (pools.size() > 1) {
      const Pool& last = pools.back();
      Pool& before = pools[pools.size() - 2];
      if (before.sum / before.weight <= last.sum / last.weight) break;
      before = {before.sum + last.sum, before.weight + last.weight, before.count + last.count};
      pools.pop_back();
    }
  }
  size_t i = 0;
  for (const Pool& pool : pools) {
    for (size_t k = 0; k < pool.count; ++k, ++i) {
      all.items[static_cast<size_t>(layer[i])].x = pool.sum / pool.weight + offsets[i];
    }
  }
}

void place_across(LayerItems& all) {
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    const bool down = sweep % 2 == 0;
    // Towards the end both sides count, which settles what alternating would move to and fro.
    const bool both = sweep >= sweeps / 2;
    for (size_t k = 0; k < all.layers.size(); ++k) {
      const auto& layer = all.layers[down ? k : all.layers.size() - 1 - k];
      std::vector<Wish> wishes;
      for (const int index : layer) {
        const LayerItem& item = all.items[static_cast<size_t>(index)];
        Wish wish;
        if (down || both) wish.add(all, item, item.above);
        if (!down || both) wish.add(all, item, item.below);
        if (wish.weight == 0) wish = {item.x * 0.01, 0.01};
        wishes.push_back(wish);
      }
      settle(all, layer, wishes);
    }
  }
}

/// Where an item may lie without touching its neighbours.
struct Room {
  double lo = -INFINITY;
  double hi = INFINITY;
};

Room room_of(const LayerItems& all, int index) {
  const LayerItem& item = all.items[static_cast<size_t>(index)];
  const auto& layer = all.layers[static_cast<size_t>(item.layer)];
  const auto here = std::find(layer.begin(), layer.end(), index);
  Room room;
  if (here != layer.begin()) {
    const LayerItem& left = all.items[static_cast<size_t>(*(here - 1))];
    room.lo = left.x + separation(left, item);
  }
  if (here + 1 != layer.end()) {
    const LayerItem& right = all.items[static_cast<size_t>(*(here + 1))];
    room.hi = right.x - separation(item, right);
  }
  return room;
}

/// Puts the lanes of an edge one below the other as far as there is room: as few bends as possible,
/// and none at an end that lies within it.
void straighten(LayerItems& all, const std::vector<int>& chain) {
  const auto item = [&](size_t i) -> LayerItem& {
    return all.items[static_cast<size_t>(chain[i])];
  };
  const double start = item(1).above[0].shift + item(0).x;
  const double end = item(chain.size() - 2).below[0].shift + item(chain.size() - 1).x;
  for (size_t first = 1; first + 1 < chain.size();) {
    Room room;
    double sum = 0;
    size_t after = first;
    for (; after + 1 < chain.size(); ++after) {
      const Room own = room_of(all, chain[after]);
      const Room both{std::max(room.lo, own.lo), std::min(room.hi, own.hi)};
      if (both.lo > both.hi && after > first) break;
      room = both;
      sum += item(after).x;
    }
    double x = std::clamp(sum / static_cast<double>(after - first), room.lo,
                          std::max(room.lo, room.hi));
    if (first == 1 && room.lo <= start && start <= room.hi) x = start;
    if (after + 1 == chain.size() && room.lo <= end && end <= room.hi) x = end;
    for (; first < after; ++first) item(first).x = x;
  }
}

/// Upper edges of the layers, and the lower edge of the last one. Layers stand further apart where
/// edges go far to the side between them.
struct Bands {
  std::vector<double> top;
  std::vector<double> bottom;
};

Bands place_down(const LayerItems& all, const LayeredDrawing& drawing) {
  Bands bands;
  double y = 0;
  for (const auto& layer : all.layers) {
    double height = 0, sideways = 0;
    for (const int index : layer) {
      const LayerItem& item = all.items[static_cast<size_t>(index)];
      if (item.box >= 0) {
        height = std::max(height, drawing.boxes[static_cast<size_t>(item.box)].height);
      }
      for (const auto& link : item.below) {
        const LayerItem& other = all.items[static_cast<size_t>(link.item)];
        sideways = std::max(sideways, std::abs(other.x + link.shift - item.x));
      }
    }
    bands.top.push_back(y);
    bands.bottom.push_back(y + height);
    y += height + std::min(least_layer_gap + 0.14 * sideways, max_layer_gap);
  }
  return bands;
}

void append(std::vector<Point>& way, Point point) {
  const bool same = !way.empty() && way.back().x == point.x && way.back().y == point.y;
  if (!same) way.push_back(point);
}

void lead_edge(LayeredEdge& edge, const std::vector<int>& chain, const LayerItems& all,
               const LayeredDrawing& drawing, const Bands& bands) {
  const LayeredBox& first = drawing.boxes[static_cast<size_t>(chain.front())];
  const LayeredBox& last = drawing.boxes[static_cast<size_t>(chain.back())];
  double x = first.top.x + (edge.reversed ? edge.to_offset : edge.from_offset);
  edge.way = {{x, first.top.y + first.height}};
  for (size_t i = 0; i + 1 < chain.size(); ++i) {
    const LayerItem& item = all.items[static_cast<size_t>(chain[i])];
    const LayerItem& next = all.items[static_cast<size_t>(chain[i + 1])];
    append(edge.way, {x, bands.bottom[static_cast<size_t>(item.layer)]});
    x = next.box < 0 ? next.x : last.top.x + (edge.reversed ? edge.from_offset : edge.to_offset);
    append(edge.way, {x, bands.top[static_cast<size_t>(next.layer)]});
  }
  append(edge.way, {x, last.top.y});
}

}  // namespace

void place_in_layers(LayeredDrawing& drawing) {
  LayerItems all = make_items(drawing);
  order_items(all);
  place_across(all);
  for (const auto& chain : all.chains) {
    if (chain.size() > 2) straighten(all, chain);
  }
  double left = INFINITY, right = -INFINITY;
  for (const LayerItem& item : all.items) {
    left = std::min(left, item.x - item.width / 2);
    right = std::max(right, item.x + item.width / 2);
  }
  for (LayerItem& item : all.items) item.x = std::round((item.x - left) * 2) / 2;
  drawing.width = all.items.empty() ? 0 : right - left + 0.5;
  const Bands bands = place_down(all, drawing);
  drawing.height = bands.bottom.empty() ? 0 : bands.bottom.back();
  for (size_t i = 0; i < drawing.boxes.size(); ++i) {
    LayeredBox& box = drawing.boxes[i];
    const auto layer = static_cast<size_t>(all.items[i].layer);
    const double room = bands.bottom[layer] - bands.top[layer] - box.height;
    box.top = {all.items[i].x, bands.top[layer] + room * (1 + box.pin) / 2};
  }
  for (size_t i = 0; i < drawing.edges.size(); ++i) {
    lead_edge(drawing.edges[i], all.chains[i], all, drawing, bands);
  }
}

}  // namespace tessera
