#include <tessera/layers/text/internal/token_counts.hpp>

#include <algorithm>

namespace tessera::detail {

void TokenCounts::add(std::string_view token) {
  const auto number = static_cast<size_t>(table_.insert(token));
  if (number == counts_.size()) counts_.emplace_back();
  Count& count = counts_[number];
  ++count.tokens;
  if (count.last_document == documents_) return;
  count.last_document = documents_;
  ++count.documents;
}

void TokenCounts::merge(const TokenCounts& other) {
  documents_ += other.documents_;
  for (int64_t i = 0; i < other.size(); ++i) {
    const auto number = static_cast<size_t>(table_.insert(other.table_[i]));
    if (number == counts_.size()) counts_.emplace_back();
    counts_[number].tokens += other.counts_[static_cast<size_t>(i)].tokens;
    counts_[number].documents += other.counts_[static_cast<size_t>(i)].documents;
  }
}

std::vector<TokenCount> TokenCounts::top_by_count(int64_t limit,
                                                  std::span<const std::string> excluded) const {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < size(); ++i) {
    if (std::find(excluded.begin(), excluded.end(), table_[i]) == excluded.end()) {
      order.push_back(i);
    }
  }
  const auto before = [this](int64_t a, int64_t b) {
    const int64_t of_a = counts_[static_cast<size_t>(a)].tokens;
    const int64_t of_b = counts_[static_cast<size_t>(b)].tokens;
    return of_a != of_b ? of_a > of_b : table_[a] > table_[b];
  };
  const auto all = static_cast<int64_t>(order.size());
  const int64_t size = limit < 0 ? all : std::min(limit, all);
  std::partial_sort(order.begin(), order.begin() + size, order.end(), before);
  std::vector<TokenCount> result;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t number = order[static_cast<size_t>(i)];
    const Count& count = counts_[static_cast<size_t>(number)];
    result.push_back({std::string(table_[number]), count.tokens, count.documents});
  }
  return result;
}

}  // namespace tessera::detail
