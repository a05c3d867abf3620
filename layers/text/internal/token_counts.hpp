#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/layers/text/internal/token_table.hpp>

namespace tessera::detail {

/// A token, how often it occurred and in how many documents.
struct TokenCount {
  std::string token;
  int64_t count = 0;
  int64_t documents = 0;
};

/// Counts the tokens of documents.
class TokenCounts {
 public:
  int64_t documents() const { return documents_; }
  int64_t size() const { return table_.size(); }
  /// Starts the next document, which the tokens added from here on belong to.
  void start_document() { ++documents_; }
  void add(std::string_view token);
  /// Adds the counts of other documents.
  void merge(const TokenCounts& other);
  /// Returns the `limit` most frequent tokens, all if it is negative, without those in `excluded`;
  /// sorted by count, then by the token's bytes, both descending.
  std::vector<TokenCount> top_by_count(int64_t limit, std::span<const std::string> excluded) const;

 private:
  struct Count {
    int64_t tokens = 0;
    int64_t documents = 0;
    int64_t last_document = 0;
  };
  TokenTable table_;
  std::vector<Count> counts_;
  int64_t documents_ = 0;
};

}  // namespace tessera::detail
