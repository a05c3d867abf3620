#include <tessera/framework/optimizer/internal/row_update.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/profile.hpp>

namespace tessera::detail {
namespace {

/// Returns a row-sparse tensor with one row for each index, sums of those that it had.
at::Tensor summed(const at::Tensor& rows) {
  const ProfileSpan span(SpanKind::op, "sum_rows");
  return rows.coalesce();
}

at::Tensor with_values(const at::Tensor& rows, const at::Tensor& values) {
  return at::_sparse_coo_tensor_unsafe(rows._indices(), values, rows.sizes(), values.options(),
                                       /*is_coalesced=*/true);
}

}  // namespace

RowsAsValues::RowsAsValues(std::vector<DTensor>& gradients) : gradients_(gradients) {
  for (size_t g = 0; g < gradients.size(); ++g) {
    if (!gradients[g].is_row_sparse()) continue;
    Blocks rows, values;
    for (const at::Tensor& block : gradients[g].stored_blocks()) {
      rows.push_back(summed(block));
      values.push_back(rows.back()._values());
    }
    gradients[g] = DTensor(gradients[g].sharding(), std::move(values));
    rows_.emplace_back(g, std::move(rows));
  }
}

RowsAsValues::~RowsAsValues() {
  for (auto& [g, rows] : rows_) {
    for (size_t b = 0; b < rows.size(); ++b) {
      rows[b] = with_values(rows[b], gradients_[g].blocks()[b]);
    }
    gradients_[g] = DTensor(gradients_[g].sharding(), std::move(rows));
  }
}

RowUpdate::RowUpdate(UpdateArgs block, double decay) : block_(std::move(block)) {
  const at::Tensor gradient = summed(block_.gradient);
  index_ = gradient._indices()[0];
  if (empty()) return;
  rows_ = block_;
  rows_.gradient = gradient._values();
  rows_.weight = block_.weight.index_select(0, index_);
  if (decay != 1) rows_.weight.mul_(decay);
  for (at::Tensor& slot : rows_.slots) slot = slot.index_select(0, index_);
}

void RowUpdate::finish() const {
  const ProfileSpan span(SpanKind::op, "write_rows");
  block_.weight.index_copy_(0, index_, rows_.weight);
  for (size_t s = 0; s < rows_.slots.size(); ++s) {
    block_.slots[s].index_copy_(0, index_, rows_.slots[s]);
  }
}

}  // namespace tessera::detail
