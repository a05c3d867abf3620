#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/layers/text/internal/token_table.hpp>

namespace tessera::detail {

/// A token, how often it came and in how many documents.
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
  /// The tokens added from here on belong to the next document.
  void start_document() { ++documents_; }
  void add(std::string_view token);
  /// Adds what was counted in other documents.
  void merge(const TokenCounts& other);
  /// The `limit` tokens that came most often, all if it is negative, without those in `left_out`;
  /// by count, then by the bytes of the token, both descending.
  std::vector<TokenCount> most_frequent(int64_t limit, std::span<const std::string> left_out) const;

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
