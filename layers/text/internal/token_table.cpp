#include <tessera/layers/text/internal/token_table.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/layers/text/internal/farm_hash.hpp>

namespace tessera::detail {

size_t TokenTable::slot_of(std::string_view token, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  size_t i = hash & mask;
  while (slots_[i].number != none && (slots_[i].tag != tag || (*this)[slots_[i].number] != token)) {
    i = (i + 1) & mask;
  }
  return i;
}

int64_t TokenTable::find(std::string_view token) const {
  if (slots_.empty()) return -1;
  const uint32_t number = slots_[slot_of(token, fingerprint64(token))].number;
  return number == none ? -1 : static_cast<int64_t>(number);
}

int64_t TokenTable::insert(std::string_view token) {
  if (ends_.size() * 2 >= slots_.size()) grow();
  const uint64_t hash = fingerprint64(token);
  Slot& slot = slots_[slot_of(token, hash)];
  if (slot.number == none) {
    slot = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(ends_.size())};
    bytes_ += token;
    ends_.push_back(bytes_.size());
  }
  return slot.number;
}

void TokenTable::grow() {
  if (ends_.size() >= (size_t{1} << 31)) {
    throw ConfigError("vocabulary", "there are fewer than 2^31 different tokens", "more",
                      "split texts into smaller tokens");
  }
  slots_.assign(slots_.empty() ? 64 : slots_.size() * 2, Slot());
  for (size_t i = 0; i < ends_.size(); ++i) {
    const std::string_view token = (*this)[static_cast<int64_t>(i)];
    const uint64_t hash = fingerprint64(token);
    slots_[slot_of(token, hash)] = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(i)};
  }
}

}  // namespace tessera::detail
