#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/internal/host_numbers.hpp>
#include <tessera/framework/ops/internal/indexing.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

using namespace detail;

namespace {

using Kind = IndexItem::Kind;

[[noreturn]] void fail_at_item(const std::string& text, const std::string& where) {
  throw ConfigError(where, "each item must be an index, a slice \"1:3\", \"...\" or \"None\"",
                    in_quotes(text), "write it as in Python");
}

/// A slice of an axis, as Python resolves it: from `begin` in steps, `end` excluded.
struct Range {
  int64_t begin, end, step;
};

Range range_of(const IndexItem& slice, int64_t extent, const std::string& where) {
  const int64_t step = slice.step.value_or(1);
  if (step == 0) throw ConfigError(where, "a step that is not 0", "0", "leave the step out");
  const int64_t first = step > 0 ? 0 : -1, last = step > 0 ? extent : extent - 1;
  const auto clipped = [&](int64_t at) {
    return std::clamp(at < 0 ? at + extent : at, first, last);
  };
  return {slice.start ? clipped(*slice.start) : (step > 0 ? first : last),
          slice.stop ? clipped(*slice.stop) : (step > 0 ? last : first), step};
}

/// Returns the positions of a range, replicated on a mesh.
DTensor positions_of(const Range& range, const Mesh& mesh) {
  const auto [begin, end, step] = range;
  const int64_t length = step > 0 ? end - begin : begin - end, stride = std::abs(step);
  const int64_t count = length > 0 ? (length - 1) / stride + 1 : 0;
  return index_range(begin, count, step, mesh);
}

DTensor sliced(const DTensor& x, int64_t axis, const Range& range) {
  const auto [begin, end, step] = range;
  if (step == 1) {
    const int64_t size = std::max<int64_t>(end - begin, 0);
    return begin == 0 && size == x.size(axis) ? x : ops::slice(x, axis, begin, size);
  }
  return ops::gather(x, positions_of(range, x.mesh()), axis);
}

}  // namespace

DTensor detail::index_range(int64_t begin, int64_t count, int64_t step, const Mesh& mesh) {
  return host_numbers({count}, at::kLong, Layout::replicated(mesh, 1),
                      [&] { return at::arange(count, at::kLong).mul_(step).add_(begin); });
}

IndexItem detail::index_item(const AxisItem& item, const std::string& where) {
  const std::string& text = item.text;
  if (text == "...") return {.kind = Kind::ellipsis};
  if (text == "None") return {.kind = Kind::new_axis};
  std::vector<std::optional<int64_t>> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(':', begin), text.size());
    int64_t number = 0;
    const char* const last = text.data() + end;
    const auto [rest, error] = std::from_chars(text.data() + begin, last, number);
    const bool empty = begin == end;
    if (!empty && (rest != last || error != std::errc())) fail_at_item(text, where);
    parts.push_back(empty ? std::nullopt : std::optional(number));
    begin = end + 1;
  }
  if (parts.size() == 1 && parts[0]) return {.kind = Kind::index, .index = *parts[0]};
  if (parts.size() < 2 || parts.size() > 3) fail_at_item(text, where);
  return {.kind = Kind::slice,
          .start = parts[0],
          .stop = parts[1],
          .step = parts.size() == 3 ? parts[2] : std::nullopt};
}

DTensor detail::indexed(DTensor x, const std::vector<IndexItem>& items, const std::string& where) {
  const auto takes_axis = [](const IndexItem& item) {
    return item.kind == Kind::index || item.kind == Kind::slice;
  };
  const int64_t rank = x.rank();
  if (std::count_if(items.begin(), items.end(), takes_axis) > rank) {
    throw ConfigError(where, str("at most ", rank, " indices and slices"),
                      str(items.size(), " items"), "leave the others out");
  }
  int64_t axis = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const IndexItem& item = items[i];
    if (item.kind == Kind::new_axis) {
      x = ops::expand_dims(x, axis++);
    } else if (item.kind == Kind::ellipsis) {
      axis = x.rank();
      for (size_t j = i + 1; j < items.size(); ++j) axis -= items[j].kind != Kind::new_axis;
    } else if (item.kind == Kind::slice) {
      x = sliced(x, axis, range_of(item, x.size(axis), where));
      ++axis;
    } else {
      const int64_t extent = x.size(axis);
      if (item.index < -extent || item.index >= extent) {
        throw ConfigError(where, str("an index of an axis of extent ", extent), str(item.index),
                          "count from 0, or from the end with -1");
      }
      x = ops::slice(x, axis, item.index < 0 ? item.index + extent : item.index, 1);
      x = ops::squeeze(x, {axis});
    }
  }
  return x;
}

DTensor DTensor::operator[](std::initializer_list<AxisItem> items) const {
  const std::string where = "DTensor::operator[]";
  std::vector<IndexItem> parsed;
  for (const AxisItem& item : items) parsed.push_back(index_item(item, where));
  return indexed(*this, parsed, where);
}

}  // namespace tessera
