#include <tessera/framework/nn/config/registry.hpp>

#include <cctype>

namespace tessera::detail {

std::string snake_case(const std::string& name) {
  // Keras exports the class as GroupQueryAttention, but names layers after its original name.
  if (name == "GroupQueryAttention") return "grouped_query_attention";
  const auto upper = [&](size_t i) {
    return i < name.size() && std::isupper(static_cast<unsigned char>(name[i]));
  };
  const auto lower = [&](size_t i) {
    return i < name.size() && std::islower(static_cast<unsigned char>(name[i]));
  };
  std::string text;
  for (size_t i = 0; i < name.size(); ++i) {
    // A word begins at a capital after or before a lower-case letter: Conv2DTranspose.
    const bool begins = i > 0 && upper(i) && (lower(i - 1) || lower(i + 1));
    if (begins) text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return text;
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace tessera::detail
