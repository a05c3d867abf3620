#include <tessera/framework/tensor/layout_picture.hpp>

#include <algorithm>
#include <map>
#include <optional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/drawing/text_grid.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr int64_t max_columns = 78;
constexpr int64_t max_lines = 50;
constexpr size_t max_rows = 64;

using Indices = std::vector<int64_t>;
/// The devices that hold one shard: one list per partial sum (a single list unless pending), by its
/// coordinates along the pending dimensions.
using Holders = std::map<Indices, std::vector<int64_t>>;
/// Holders by the shard's index along each axis.
using Shards = std::map<Indices, Holders>;

/// Returns the index of a device's shard along an axis; the axis' first mesh dimension is the most
/// significant.
int64_t shard_index(const Layout& layout, int64_t axis, const Indices& device) {
  int64_t index = 0;
  for (const int dim : layout.axis(axis)) {
    index = index * layout.mesh().dim_size(dim) + device[static_cast<size_t>(dim)];
  }
  return index;
}

Shards find_shards(const Layout& layout) {
  Shards shards;
  const Mesh& mesh = layout.mesh();
  for (int64_t id = 0; id < mesh.size(); ++id) {
    const Indices device = mesh.coordinates(id);
    Indices shard, addend;
    for (int64_t axis = 0; axis < layout.rank(); ++axis) {
      shard.push_back(shard_index(layout, axis, device));
    }
    for (int dim = 0; dim < mesh.rank(); ++dim) {
      if (layout.partial_dims() >> dim & 1) addend.push_back(device[static_cast<size_t>(dim)]);
    }
    shards[shard][addend].push_back(id);
  }
  return shards;
}

/// Formats ascending ids, runs of three and more as ranges: "0,1", "0-3,8".
std::string ids_text(const std::vector<int64_t>& ids) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < ids.size();) {
    size_t end = i + 1;
    while (end < ids.size() && ids[end] == ids[end - 1] + 1) ++end;
    if (end - i < 3) end = i + 1;
    parts.push_back(end == i + 1 ? std::to_string(ids[i]) : str(ids[i], '-', ids[end - 1]));
    i = end;
  }
  return join(parts, ",");
}

std::string holders_text(const Holders& holders) {
  std::vector<std::string> addends;
  for (const auto& [addend, ids] : holders) addends.push_back(ids_text(ids));
  return join(addends, " + ");
}

Interval shard_range(const Shape& shape, const Layout& layout, const Indices& shard, int64_t axis) {
  const auto i = static_cast<size_t>(axis);
  return shard_interval(shape[i], layout.num_shards(axis), shard[i]);
}

bool is_empty(const Shape& shape, const Layout& layout, const Indices& shard) {
  for (int64_t axis = 0; axis < layout.rank(); ++axis) {
    if (shard_range(shape, layout, shard, axis).empty()) return true;
  }
  return false;
}

std::vector<int64_t> sharded_axes(const Layout& layout) {
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < layout.rank(); ++axis) {
    if (layout.num_shards(axis) > 1) axes.push_back(axis);
  }
  return axes;
}

/// Returns the axes drawn downwards and across, -1 for none; nothing if more than two are sharded.
std::optional<std::pair<int64_t, int64_t>> drawn_axes(const Layout& layout) {
  const int64_t rank = layout.rank();
  if (rank < 2) return std::pair<int64_t, int64_t>{-1, rank - 1};
  std::vector<int64_t> axes = sharded_axes(layout);
  if (axes.size() > 2) return std::nullopt;
  for (int64_t axis = rank - 1; axes.size() < 2; --axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
  }
  return std::minmax(axes[0], axes[1]);
}

/// Returns the boundaries of an axis' non-empty shards, from 0.
std::vector<int64_t> boundaries(const Shape& shape, const Layout& layout, int64_t axis) {
  std::vector<int64_t> bounds = {0};
  const int64_t shards = axis < 0 ? 1 : layout.num_shards(axis);
  const int64_t extent = axis < 0 ? 1 : shape[static_cast<size_t>(axis)];
  for (int64_t i = 0; i < shards; ++i) {
    const Interval interval = shard_interval(extent, shards, i);
    if (!interval.empty()) bounds.push_back(interval.hi);
  }
  return bounds;
}

std::optional<std::string> picture(const Shape& shape, const Layout& layout, const Shards& shards) {
  const auto axes = drawn_axes(layout);
  if (!axes) return std::nullopt;
  TextGrid grid;
  grid.row_bounds = boundaries(shape, layout, axes->first);
  grid.column_bounds = boundaries(shape, layout, axes->second);
  grid.show_rows = axes->first >= 0;
  grid.show_columns = axes->second >= 0;
  grid.labels.resize(grid.row_bounds.size() - 1);
  int64_t row = -1;
  // Shards come row by row, since axes that are not drawn are unsharded.
  for (const auto& [shard, holders] : shards) {
    if (is_empty(shape, layout, shard)) continue;
    const bool first = axes->second < 0 || shard_range(shape, layout, shard, axes->second).lo == 0;
    if (first) ++row;
    grid.labels[static_cast<size_t>(row)].push_back(holders_text(holders));
  }
  return draw_grid(grid, max_columns, max_lines);
}

/// Formats one line per shard: its intervals along the sharded axes, and its devices.
std::string table(const Shape& shape, const Layout& layout, const Shards& shards) {
  std::vector<std::vector<std::string>> rows(1);
  const std::vector<int64_t> axes = sharded_axes(layout);
  for (const int64_t axis : axes) rows[0].push_back(str("axis ", axis));
  rows[0].push_back("devices");
  for (const auto& [shard, holders] : shards) {
    if (is_empty(shape, layout, shard)) continue;
    std::vector<std::string> row;
    for (const int64_t axis : axes) {
      const Interval interval = shard_range(shape, layout, shard, axis);
      row.push_back(str(interval.lo, ':', interval.hi));
    }
    row.push_back(holders_text(holders));
    rows.push_back(row);
  }
  std::vector<size_t> widths(axes.size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (size_t r = 0; r < rows.size() && r <= max_rows; ++r) {
    std::string line;
    for (size_t i = 0; i < widths.size(); ++i) {
      line += rows[r][i] + std::string(widths[i] - rows[r][i].size() + 2, ' ');
    }
    const std::string indent(line.size(), ' ');
    const size_t room = std::max<size_t>(max_columns, line.size() + 8) - line.size();
    for (const std::string& chunk : break_list(rows[r].back(), room)) {
      text += line + chunk + "\n";
      line = indent;
    }
  }
  if (rows.size() - 1 > max_rows) text += str("and ", rows.size() - 1 - max_rows, " more\n");
  return text;
}

/// Returns dtype, shape, layout and mesh: on one line if they fit, else on a line each.
std::string title(const std::string& dtype, const Shape& shape, const Layout& layout) {
  const std::string fields[] = {(dtype.empty() ? "shape " : dtype + " ") + to_string(shape),
                                "layout " + one_line(layout.describe(), max_columns - 10),
                                "mesh " + one_line(layout.mesh().describe(), max_columns - 8)};
  const std::string line = join(fields, ", ");
  std::string text = (line.size() <= max_columns ? line : join(fields, "\n")) + "\n";
  const auto axes = drawn_axes(layout);
  if (layout.rank() > 2 && axes) {
    text += str("axis ", axes->first, " downwards, axis ", axes->second, " across\n");
  }
  return text;
}

std::string visualize(const std::string& dtype, const Shape& shape, const Layout& layout) {
  if (static_cast<int64_t>(shape.size()) != layout.rank()) {
    throw LayoutError("visualize_layout",
                      str("the layout of this tensor must have rank ", shape.size()),
                      layout.describe(), "pass a layout with one entry for each axis");
  }
  const std::string head = title(dtype, shape, layout);
  if (numel(shape) == 0) return head + "no elements\n";
  const Shards shards = find_shards(layout);
  std::string text = head;
  if (const auto drawn = picture(shape, layout, shards)) {
    text += *drawn;
  } else {
    text += table(shape, layout, shards);
  }
  std::vector<int64_t> idle;
  for (const auto& [shard, holders] : shards) {
    if (!is_empty(shape, layout, shard)) continue;
    for (const auto& [addend, ids] : holders) idle.insert(idle.end(), ids.begin(), ids.end());
  }
  std::sort(idle.begin(), idle.end());
  if (idle.empty()) return text;
  for (const std::string& line : break_list("without elements: " + ids_text(idle), max_columns)) {
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string visualize_layout(const Shape& shape, const Layout& layout) {
  return visualize("", shape, layout);
}

std::string visualize_layout(const DTensor& tensor) {
  if (!tensor.defined()) {
    throw StateError("visualize_layout", "the tensor must be defined", "an undefined tensor",
                     "assign a value to it");
  }
  return visualize(dtype_name(tensor.dtype()), tensor.shape(), tensor.layout());
}

}  // namespace tessera
