#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace tessera::detail {

/// A number, how often it occurred and in how many rows.
struct NumberCount {
  int64_t number = 0, count = 0, documents = 0;
};

/// Counts the integers of rows.
class NumberCounts {
 public:
  /// Adds the rows of a tensor (rows, …).
  void add(const at::Tensor& data);
  int64_t documents() const { return documents_; }
  /// Returns the `limit` most frequent numbers, all if it is negative, without those in `excluded`;
  /// sorted by count, then by the number, both descending.
  std::vector<NumberCount> top_by_count(int64_t limit, std::span<const int64_t> excluded) const;

 private:
  std::map<int64_t, NumberCount> counts_;
  int64_t documents_ = 0;
};

}  // namespace tessera::detail
