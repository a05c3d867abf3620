#include <tessera/framework/base/own_class.hpp>

#include <cctype>
#include <string_view>

namespace tessera::detail {
namespace {

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// Removes a name with its length before it, "5Dense".
bool take_name(std::string_view& text) {
  size_t length = 0;
  while (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0]))) {
    length = length * 10 + static_cast<size_t>(text[0] - '0');
    text.remove_prefix(1);
  }
  if (length == 0 || length > text.size()) return false;
  text.remove_prefix(length);
  return true;
}

}  // namespace

/// As the Itanium C++ ABI writes nested names: N <names> E, a template's arguments behind an I.
bool in_own_namespace(const char* type) {
  std::string_view text = type;
  if (!take(text, "N7tessera")) return false;
  take(text, "12_GLOBAL__N_1");
  return take_name(text) && (text.starts_with("E") || text.starts_with("I"));
}

}  // namespace tessera::detail
