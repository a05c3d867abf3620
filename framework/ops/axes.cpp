#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/internal/host_numbers.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::ops {

using namespace detail;

namespace {

/// Throws ShapeError unless x has at least this rank.
void check_rank(const std::string& where, const DTensor& x, int64_t rank) {
  if (x.rank() >= rank) return;
  throw ShapeError(where, str("x must have at least ", rank, rank == 1 ? " axis" : " axes"),
                   to_string(x.shape()), "expand its dimensions");
}

/// Returns each index as often as its count: int64, replicated on a mesh.
DTensor repeated_indices(const std::vector<int64_t>& repeats, const Mesh& mesh) {
  int64_t count = 0;
  for (const int64_t times : repeats) count += times;
  return host_numbers({count}, at::kLong, Layout::replicated(mesh, 1), [&] {
    return at::arange(int64_t(repeats.size()), at::kLong)
        .repeat_interleave(at::tensor(repeats, at::kLong));
  });
}

void check_repeats(const std::vector<int64_t>& repeats, int64_t extent) {
  for (const int64_t times : repeats) {
    if (times < 0) throw ShapeError("repeat", "counts are at least 0", to_string(repeats), "");
  }
  if (int64_t(repeats.size()) == extent) return;
  throw ShapeError("repeat", str("one count for each of ", extent, " elements"),
                   str(repeats.size(), " counts"), "give one count for all, or one for each");
}

}  // namespace

DTensor swapaxes(const DTensor& x, int64_t axis1, int64_t axis2) {
  const int64_t a = normalize_axis(axis1, x.rank(), "swapaxes");
  const int64_t b = normalize_axis(axis2, x.rank(), "swapaxes");
  return moveaxis(x, {a, b}, {b, a});
}

DTensor moveaxis(const DTensor& x, const std::vector<int64_t>& source,
                 const std::vector<int64_t>& destination) {
  std::vector<int64_t> order(size_t(x.rank()), -1);
  std::vector<bool> moves(size_t(x.rank()), false);
  bool fits = source.size() == destination.size();
  for (size_t i = 0; fits && i < source.size(); ++i) {
    const auto from = size_t(normalize_axis(source[i], x.rank(), "moveaxis"));
    const auto to = size_t(normalize_axis(destination[i], x.rank(), "moveaxis"));
    fits = !moves[from] && order[to] < 0;
    moves[from] = true;
    order[to] = int64_t(from);
  }
  if (!fits) {
    throw ShapeError("moveaxis", "source and destination name as many different axes",
                     to_string(source) + " and " + to_string(destination), "name each axis once");
  }
  size_t next = 0;
  for (int64_t& axis : order) {
    if (axis >= 0) continue;
    while (moves[next]) ++next;
    axis = int64_t(next++);
  }
  return order.empty() ? x : transpose(x, order);
}

DTensor ravel(const DTensor& x) { return reshape(x, {x.numel()}); }

DTensor rot90(const DTensor& x, int64_t k, std::pair<int64_t, int64_t> axes) {
  const int64_t a = normalize_axis(axes.first, x.rank(), "rot90");
  const int64_t b = normalize_axis(axes.second, x.rank(), "rot90");
  if (a == b) {
    throw ShapeError("rot90", "the axes must differ", str(axes.first, " and ", axes.second), "");
  }
  switch ((k % 4 + 4) % 4) {
    case 1:
      return swapaxes(flip(x, {b}), a, b);
    case 2:
      return flip(x, {a, b});
    case 3:
      return flip(swapaxes(x, a, b), {b});
    default:
      return x;
  }
}

DTensor fliplr(const DTensor& x) {
  check_rank("fliplr", x, 2);
  return flip(x, {1});
}

DTensor flipud(const DTensor& x) {
  check_rank("flipud", x, 1);
  return flip(x, {0});
}

DTensor repeat(const DTensor& x, int64_t repeats, std::optional<int64_t> axis) {
  if (!axis) return repeat(ravel(x), repeats, 0);
  const int64_t a = normalize_axis(*axis, x.rank(), "repeat");
  if (repeats < 0) throw ShapeError("repeat", "counts are at least 0", str(repeats), "");
  Shape apart = x.shape(), joined = x.shape();
  apart.insert(apart.begin() + a + 1, 1);
  Shape repeated = apart;
  repeated[size_t(a) + 1] = repeats;
  joined[size_t(a)] *= repeats;
  return reshape(broadcast_to(reshape(x, apart), repeated), joined);
}

DTensor repeat(const DTensor& x, const std::vector<int64_t>& repeats, std::optional<int64_t> axis) {
  if (repeats.size() == 1) return repeat(x, repeats[0], axis);
  if (!axis) return repeat(ravel(x), repeats, 0);
  const int64_t a = normalize_axis(*axis, x.rank(), "repeat");
  check_repeats(repeats, x.size(a));
  return gather(x, repeated_indices(repeats, x.mesh()), a);
}

}  // namespace tessera::ops
