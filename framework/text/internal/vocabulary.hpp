#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// The tokens of a model and their ids, which may have gaps.
class Vocabulary {
 public:
  Vocabulary() = default;
  /// Reads an object from tokens to ids. Throws ConfigError for a negative id, or one used twice.
  Vocabulary(const Json& json, const JsonPath& path);

  /// Adds a token. Returns whether its id was new; a token's last id counts.
  bool add(std::string token, int32_t id);
  std::optional<int32_t> id(std::string_view token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  /// Returns the token of an id; null if there is none.
  const std::string* token(int32_t id) const;
  size_t size() const { return ids_.size(); }
  /// Returns the smallest id above all others.
  int32_t end() const { return end_; }
  /// Calls visit(token, id) for each token.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& [token, id] : ids_) visit(token, id);
  }

 private:
  std::deque<std::string> texts_;  ///< never moves, since views refer to it
  std::unordered_map<std::string_view, int32_t> ids_;
  std::unordered_map<int32_t, const std::string*> tokens_;
  int32_t end_ = 0;
};

}  // namespace tessera::detail
