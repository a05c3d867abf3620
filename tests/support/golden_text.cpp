#include "tests/support/golden_text.hpp"

#include <algorithm>
#include <cstdlib>

#include "tests/support/files.hpp"

namespace tessera::test {

std::string first_difference(const std::string& actual, const std::string& expected) {
  size_t line = 0;
  for (size_t i = 0; i < std::max(actual.size(), expected.size()); ++i) {
    if (i >= actual.size() || i >= expected.size() || actual[i] != expected[i]) {
      const auto show = [&](const std::string& text) {
        return text.substr(line, text.find('\n', std::min(i, text.size())) - line);
      };
      return "is now \"" + show(actual) + "\", was \"" + show(expected) + "\"";
    }
    if (actual[i] == '\n') line = i + 1;
  }
  return "";
}

std::string golden_difference(const std::string& file, const std::string& actual) {
  const char* update = std::getenv("TESSERA_UPDATE_GOLDEN");
  if (update && std::string(update) == "1") {
    write_file(golden_path(file), actual);
    return "";
  }
  const std::string wrong = first_difference(actual, read_file(golden_path(file)));
  return wrong.empty() ? "" : file + " " + wrong + " (write it anew with TESSERA_UPDATE_GOLDEN=1)";
}

}  // namespace tessera::test
