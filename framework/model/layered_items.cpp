#include <tessera/framework/model/layered_items.hpp>

#include <algorithm>
#include <functional>

namespace tessera {
namespace {

/// Edges as they go downwards.
int upper(const LayeredEdge& edge) { return edge.reversed ? edge.to : edge.from; }
int lower(const LayeredEdge& edge) { return edge.reversed ? edge.from : edge.to; }

template <class T>
auto& at(T& values, int index) {
  return values[static_cast<size_t>(index)];
}

void reverse_cycles(LayeredDrawing& drawing) {
  std::vector<std::vector<LayeredEdge*>> out(drawing.boxes.size());
  for (LayeredEdge& edge : drawing.edges) at(out, edge.from).push_back(&edge);
  enum State : char { unseen, open, done };
  std::vector<State> state(drawing.boxes.size(), unseen);
  const std::function<void(int)> visit = [&](int box) {
    at(state, box) = open;
    for (LayeredEdge* edge : at(out, box)) {
      if (at(state, edge->to) == open) edge->reversed = true;
      if (at(state, edge->to) == unseen) visit(edge->to);
    }
    at(state, box) = done;
  };
  for (size_t box = 0; box < drawing.boxes.size(); ++box) {
    if (state[box] == unseen) visit(static_cast<int>(box));
  }
}

/// Layers by the longest path from a source.
std::vector<int> longest_paths(const LayeredDrawing& drawing) {
  std::vector<int> layers(drawing.boxes.size(), 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (const LayeredEdge& edge : drawing.edges) {
      const int least = at(layers, upper(edge)) + 1;
      if (at(layers, lower(edge)) >= least) continue;
      at(layers, lower(edge)) = least;
      changed = true;
    }
  }
  return layers;
}

std::vector<int> find_layers(const LayeredDrawing& drawing) {
  std::vector<int> layers = longest_paths(drawing);
  if (layers.empty()) return layers;
  const int last = *std::max_element(layers.begin(), layers.end());
  for (size_t i = 0; i < layers.size(); ++i) {
    const int box = static_cast<int>(i);
    if (drawing.boxes[i].pin > 0) layers[i] = last;
    if (drawing.boxes[i].pin != 0 || layers[i] != 0) continue;
    // A source stands right above what it feeds first.
    int first = last + 1;
    for (const LayeredEdge& edge : drawing.edges) {
      if (upper(edge) == box) first = std::min(first, at(layers, lower(edge)));
    }
    if (first <= last) layers[i] = first - 1;
  }
  return layers;
}

void link(LayerItems& all, int above, int below, double above_offset, double below_offset) {
  at(all.items, above).below.push_back({below, below_offset - above_offset});
  at(all.items, below).above.push_back({above, above_offset - below_offset});
}

}  // namespace

LayerItems make_items(LayeredDrawing& drawing) {
  reverse_cycles(drawing);
  const std::vector<int> layer_of = find_layers(drawing);
  LayerItems all;
  const auto add = [&all](const LayerItem& item) {
    const auto layer = static_cast<size_t>(item.layer);
    if (all.layers.size() <= layer) all.layers.resize(layer + 1);
    all.layers[layer].push_back(static_cast<int>(all.items.size()));
    all.items.push_back(item);
    return all.layers[layer].back();
  };
  for (size_t box = 0; box < drawing.boxes.size(); ++box) {
    add({.box = static_cast<int>(box), .width = drawing.boxes[box].width, .layer = layer_of[box]});
  }
  for (const LayeredEdge& edge : drawing.edges) {
    std::vector<int> chain = {upper(edge)};
    const int end = at(layer_of, lower(edge));
    for (int layer = at(layer_of, upper(edge)) + 1; layer < end; ++layer) {
      chain.push_back(add({.layer = layer}));
    }
    chain.push_back(lower(edge));
    const double first = edge.reversed ? edge.to_offset : edge.from_offset;
    const double last = edge.reversed ? edge.from_offset : edge.to_offset;
    for (size_t i = 0; i + 1 < chain.size(); ++i) {
      link(all, chain[i], chain[i + 1], i == 0 ? first : 0, i + 2 == chain.size() ? last : 0);
    }
    all.chains.push_back(std::move(chain));
  }
  return all;
}

}  // namespace tessera
