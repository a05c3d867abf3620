#include <tessera/framework/text/internal/vocabulary.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace tessera::detail {

Vocabulary::Vocabulary(const Json& json, const JsonPath& path) {
  if (!json.is_object()) json_fail(json, path, "an object from tokens to ids");
  ids_.reserve(json.size());
  tokens_.reserve(json.size());
  for (const auto& [token, value] : json.items()) {
    const auto id = json_as<int32_t>(value, path.key(token));
    if (id < 0 || id == std::numeric_limits<int32_t>::max()) {
      json_fail(value, path.key(token), "an id that is not negative");
    }
    if (!add(token, id)) json_fail(value, path.key(token), "an id that no other token has");
  }
}

bool Vocabulary::add(std::string token, int32_t id) {
  const std::string& text = texts_.emplace_back(std::move(token));
  const bool is_new = tokens_.try_emplace(id, &text).second;
  ids_[text] = id;
  end_ = std::max(end_, id + 1);
  return is_new;
}

const std::string* Vocabulary::token(int32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : found->second;
}

}  // namespace tessera::detail
