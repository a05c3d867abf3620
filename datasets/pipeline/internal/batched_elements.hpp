#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tessera/datasets/pipeline/internal/pipeline_rows.hpp>
#include <tessera/datasets/pipeline/internal/pipeline_stage.hpp>

namespace tessera::detail {

/// Base of the elements that are batches: each batch is made from rows of known numbers.
class BatchedElements : public PipelineElements {
 public:
  BatchedElements(std::shared_ptr<const PipelineElements> rows, LayoutMap layouts)
      : rows_(std::move(rows)), layouts_(std::move(layouts)) {}

  std::vector<Examples> get(std::span<const int64_t> numbers) const override {
    std::vector<Examples> batches;
    for (const int64_t number : numbers) batches.push_back(batch(number));
    return batches;
  }
  std::optional<int64_t> original(int64_t) const override { return std::nullopt; }

 protected:
  virtual Examples batch(int64_t number) const = 0;

  /// Reads the rows of a global batch that this process is to hold and returns what `make` makes of
  /// them. If it holds none, one row is read nevertheless, for its shape.
  template <class Make>
  Examples batch_of(const std::vector<int64_t>& numbers, const Make& make) const {
    const std::optional<RowPart> part = part_to_read(std::ssize(numbers), layouts_);
    if (!part) return make(rows_->get(numbers));
    const bool none = part->rows.empty();
    const auto first = static_cast<size_t>(part->rows.lo);
    const auto count = none ? 1 : static_cast<size_t>(part->rows.size());
    Examples mine = make(rows_->get(std::span(numbers).subspan(first, count)));
    if (none) mine = rows_between(mine, {0, 0});
    mine.part = part;
    return mine;
  }

  std::shared_ptr<const PipelineElements> rows_;
  LayoutMap layouts_;
};

}  // namespace tessera::detail
