#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/io/format/checkpoint_grid.hpp>

namespace tessera::detail {

/// How a weight is read from a tensor whose axes are in another order and not split.
class StoredAxes {
 public:
  /// Returns the axes of a tensor in the weight's own layout; nothing for another shape.
  static std::optional<StoredAxes> same(const Shape& stored, const Shape& weight);
  /// Returns the axes of a tensor in the weight's order, of which some may be split. Nothing if the
  /// tensor has another shape.
  static std::optional<StoredAxes> in_order(const Shape& stored, const Shape& weight);
  /// Returns the axes of a tensor in PyTorch's layout: the two axes of a matrix are swapped, and of
  /// a kernel the first two stand last, swapped. Then axes may be split. Nothing if the tensor has
  /// another shape.
  static std::optional<StoredAxes> of_torch(const Shape& stored, const Shape& weight);

  /// Returns the elements `area` of the weight. `read` returns a rectangle of the stored tensor,
  /// which is larger along split axes.
  at::Tensor read(const Rectangle& area,
                  const std::function<at::Tensor(const Rectangle&)>& read) const;

 private:
  /// An axis of the stored tensor, in the weight's order, and the weight's axes [begin, end) that
  /// it is split into; none for an extent of 1 that the weight lacks.
  struct Axis {
    size_t stored;
    size_t begin, end;
  };
  static std::optional<StoredAxes> split(const std::vector<size_t>& order, const Shape& stored,
                                         const Shape& weight);

  Shape stored_, weight_;
  std::vector<Axis> axes_;
};

}  // namespace tessera::detail
