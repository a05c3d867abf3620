#include <tessera/framework/io/format/rectangle_runs.hpp>

#include <vector>

namespace tessera::detail {
namespace {

/// Returns the strides in bytes of a row-major rectangle.
std::vector<uint64_t> strides_of(const Rectangle& area, uint64_t element) {
  std::vector<uint64_t> strides(area.begin.size(), element);
  for (size_t axis = strides.size(); axis-- > 1;) {
    strides[axis - 1] = strides[axis] * static_cast<uint64_t>(area.size(axis));
  }
  return strides;
}

/// Advances to the begin of the next run, in row-major order over the axes before `run_axis`.
/// Returns false after the last one.
bool advance_run(Shape& at, const std::vector<Interval>& common, size_t run_axis) {
  for (size_t axis = run_axis; axis-- > 0;) {
    if (++at[axis] < common[axis].hi) return true;
    at[axis] = common[axis].lo;
  }
  return false;
}

}  // namespace

void for_each_run(const Rectangle& from, const Rectangle& to, uint64_t element,
                  const std::function<void(const CommonRun&)>& each) {
  const size_t rank = to.begin.size();
  std::vector<Interval> common(rank);
  for (size_t axis = 0; axis < rank; ++axis) {
    common[axis] = intersect({from.begin[axis], from.end[axis]}, {to.begin[axis], to.end[axis]});
    if (common[axis].empty()) return;
  }
  // The outermost axis along which both are contiguous.
  size_t run_axis = rank == 0 ? 0 : rank - 1;
  while (run_axis > 0 && from.size(run_axis) == to.size(run_axis) &&
         common[run_axis].size() == to.size(run_axis)) {
    --run_axis;
  }
  const std::vector<uint64_t> source = strides_of(from, element);
  const std::vector<uint64_t> target = strides_of(to, element);
  const uint64_t bytes =
      rank == 0 ? element : source[run_axis] * static_cast<uint64_t>(common[run_axis].size());
  Shape at;
  for (const Interval& interval : common) at.push_back(interval.lo);
  for (bool more = true; more; more = advance_run(at, common, run_axis)) {
    CommonRun run{0, 0, bytes};
    for (size_t axis = 0; axis < rank; ++axis) {
      run.source += static_cast<uint64_t>(at[axis] - from.begin[axis]) * source[axis];
      run.target += static_cast<uint64_t>(at[axis] - to.begin[axis]) * target[axis];
    }
    each(run);
  }
}

Rectangle full_rectangle(const Shape& shape) { return {Shape(shape.size(), 0), shape}; }

}  // namespace tessera::detail
