#pragma once

#include <utility>
#include <vector>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera::detail {

/// While alive, the row-sparse ones of these gradients are dense tensors of their rows, one for
/// each index, so that factors, norms and bounds apply to them as to any tensor.
class RowsAsValues {
 public:
  explicit RowsAsValues(std::vector<DTensor>& gradients);
  ~RowsAsValues();
  RowsAsValues(const RowsAsValues&) = delete;
  RowsAsValues& operator=(const RowsAsValues&) = delete;

 private:
  std::vector<DTensor>& gradients_;
  std::vector<std::pair<size_t, Blocks>> rows_;  ///< the gradients that were row-sparse
};

/// The update of the rows of a block for which a row-sparse gradient has values: copies of them,
/// for any update that works element by element.
class RowUpdate {
 public:
  /// Takes the rows out of a block's weight and slots and multiplies those of the weight by
  /// `decay`. The block's gradient is row-sparse.
  RowUpdate(UpdateArgs block, double decay);
  /// Whether the gradient has no row in this block.
  bool empty() const { return index_.numel() == 0; }
  /// The arguments of the update.
  const UpdateArgs& rows() const { return rows_; }
  /// Writes the updated rows into the block.
  void finish() const;

 private:
  UpdateArgs block_, rows_;
  at::Tensor index_;
};

}  // namespace tessera::detail
