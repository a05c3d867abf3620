#include <tessera/framework/io/internal/torch_layout.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/ATen.h>

namespace tessera::detail {
namespace {

/// Returns the stored axis of each axis, after PyTorch's axes were put into Keras' order.
std::vector<size_t> torch_order(size_t rank) {
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  if (rank < 2) return order;
  std::rotate(order.begin(), order.begin() + 2, order.end());
  std::swap(order[rank - 2], order[rank - 1]);
  return order;
}

}  // namespace

std::optional<StoredAxes> StoredAxes::same(const Shape& stored, const Shape& weight) {
  if (stored != weight) return std::nullopt;
  return in_order(stored, weight);
}

std::optional<StoredAxes> StoredAxes::in_order(const Shape& stored, const Shape& weight) {
  std::vector<size_t> order(stored.size());
  std::iota(order.begin(), order.end(), size_t{0});
  return split(order, stored, weight);
}

std::optional<StoredAxes> StoredAxes::of_torch(const Shape& stored, const Shape& weight) {
  return split(torch_order(stored.size()), stored, weight);
}

std::optional<StoredAxes> StoredAxes::split(const std::vector<size_t>& order, const Shape& stored,
                                            const Shape& weight) {
  StoredAxes all;
  all.stored_ = stored;
  all.weight_ = weight;
  Shape ordered;
  for (const size_t axis : order) ordered.push_back(stored[axis]);
  size_t next = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    Axis axis{order[i], next, next};
    // An extent of 1 that the weight lacks, as the input channels of depthwise kernels.
    const bool absent =
        ordered[i] == 1 && ordered != weight && (next == weight.size() || weight[next] != 1);
    int64_t extent = 1;
    while (!absent && axis.end < weight.size() && (axis.end == axis.begin || extent < ordered[i])) {
      extent *= weight[axis.end++];
    }
    if (extent != ordered[i]) return std::nullopt;
    next = axis.end;
    all.axes_.push_back(axis);
  }
  for (; next < weight.size(); ++next) {
    if (weight[next] != 1 || all.axes_.empty() || all.axes_.back().end != next) return std::nullopt;
    ++all.axes_.back().end;
  }
  return all;
}

at::Tensor StoredAxes::read(const Rectangle& area,
                            const std::function<at::Tensor(const Rectangle&)>& read) const {
  Rectangle stored{Shape(stored_.size(), 0), stored_};
  std::vector<int64_t> order;
  Shape split;
  // A weight may split a stored axis, as features into heads: a range of the first part, the heads,
  // is a range of the stored axis, and only that is read.
  std::vector<bool> is_read(weight_.size(), false);
  for (const Axis& axis : axes_) {
    order.push_back(static_cast<int64_t>(axis.stored));
    size_t first = axis.begin;
    while (first + 1 < axis.end && weight_[first] == 1) ++first;
    int64_t inner = 1;
    for (size_t i = first + 1; i < axis.end; ++i) inner *= weight_[i];
    if (first < axis.end) {
      is_read[first] = true;
      stored.begin[axis.stored] = area.begin[first] * inner;
      stored.end[axis.stored] = area.end[first] * inner;
    }
    for (size_t i = axis.begin; i < axis.end; ++i) {
      split.push_back(is_read[i] ? area.size(i) : weight_[i]);
    }
  }
  at::Tensor block = read(stored).permute(order).reshape(split);
  for (size_t i = 0; i < split.size(); ++i) {
    if (!is_read[i]) block = block.narrow(static_cast<int64_t>(i), area.begin[i], area.size(i));
  }
  return block.contiguous();
}

}  // namespace tessera::detail
