#include <tessera/framework/base/error.hpp>

namespace tessera {
namespace {

std::string sentence(const std::string& text) {
  return text.empty() || text.back() == '.' ? text : text + ".";
}

std::string compose(const std::string& where, const std::string& expected,
                    const std::string& received, const std::string& fix) {
  std::string text = where.empty() ? "" : "[" + where + "] ";
  text += sentence(expected);
  if (!received.empty()) text += " Received: " + sentence(received);
  if (!fix.empty()) text += " To fix: " + sentence(fix);
  return text;
}

}  // namespace

Error::Error(const std::string& where, const std::string& expected, const std::string& received,
             const std::string& fix)
    : std::runtime_error(compose(where, expected, received, fix)) {}

}  // namespace tessera
