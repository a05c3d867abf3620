#include <tessera/framework/text/internal/precompiled_charsmap.hpp>

#include <cstring>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/text/internal/unicode.hpp>

namespace tessera::detail {
namespace {

constexpr size_t max_cluster_bytes = 5;

// The bits of a unit of the double array.
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) == 1; }
uint32_t value_in(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t label_in(uint32_t unit) { return unit & 0x800000FF; }
uint32_t offset_in(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

}  // namespace

PrecompiledCharsmap::PrecompiledCharsmap(std::string_view bytes, const std::string& where) {
  const auto refuse = [&](const std::string& received) {
    throw ConfigError(where, "a table of SentencePiece", received, "write the file again");
  };
  uint32_t array_bytes = 0;
  if (bytes.size() < sizeof(array_bytes)) refuse(str(bytes.size(), " bytes"));
  std::memcpy(&array_bytes, bytes.data(), sizeof(array_bytes));
  bytes.remove_prefix(sizeof(array_bytes));
  if (array_bytes == 0 || array_bytes % sizeof(uint32_t) != 0 || array_bytes > bytes.size()) {
    refuse(str("an array of ", array_bytes, " of ", bytes.size(), " bytes"));
  }
  units_.resize(array_bytes / sizeof(uint32_t));
  std::memcpy(units_.data(), bytes.data(), array_bytes);
  replacements_ = bytes.substr(array_bytes);
  if (!is_valid_utf8(replacements_)) refuse("replacements that are not valid UTF-8");
}

std::optional<std::string_view> PrecompiledCharsmap::replacement(std::string_view text) const {
  uint64_t node = offset_in(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label_in(units_[node]) != byte) break;
    const uint32_t unit = units_[node];
    node ^= offset_in(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size()) break;
    const size_t begin = value_in(units_[node]);
    // A damaged table may point between characters.
    if (begin >= replacements_.size() || (replacements_[begin] & 0xC0) == 0x80) break;
    const size_t end = replacements_.find('\0', begin);
    return std::string_view(replacements_).substr(begin, end - begin);
  }
  return std::nullopt;
}

void PrecompiledCharsmap::apply(std::string& text) const {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    const size_t length = grapheme_length(rest);
    const std::string_view cluster = rest.substr(0, length);
    at += length;
    if (cluster.size() <= max_cluster_bytes) {
      if (const auto replaced = replacement(cluster)) {
        out += *replaced;
        continue;
      }
    }
    for (size_t i = 0; i < cluster.size();) {
      const std::string_view character = cluster.substr(i, length_after(cluster[i]));
      out += replacement(character).value_or(character);
      i += character.size();
    }
  }
  text = std::move(out);
}

}  // namespace tessera::detail
