#include <tessera/framework/base/error.hpp>

namespace tessera {

using namespace detail;

namespace {

std::string sentence(const std::string& text) {
  return text.empty() || text.back() == '.' ? text : text + ".";
}

/// Strips the trailing blank of a layer without a name yet: "Dense ".
std::string trimmed(const std::string& where) {
  return where.substr(0, where.find_last_not_of(' ') + 1);
}

std::string compose(const std::string& where, const std::string& expected,
                    const std::string& received, const std::string& fix) {
  std::string text = where.empty() ? "" : "[" + trimmed(where) + "]";
  if (!expected.empty()) text += " " + sentence(expected);
  if (!received.empty()) text += " Received: " + sentence(received);
  if (!fix.empty()) text += " To fix: " + sentence(fix);
  return text.rfind(' ', 0) == 0 ? text.substr(1) : text;
}

/// Rethrows an error of class E with `untrimmed_where` prepended to the brackets of its text.
template <class E>
[[noreturn]] void throw_at(const std::string& untrimmed_where, const E& error) {
  const std::string where = trimmed(untrimmed_where), line = error.what();
  const size_t named = line.find(where);
  if (named != std::string::npos && named < line.find("] ")) throw;
  if (line.front() == '[') throw E("[" + where + ", " + line.substr(1));
  throw E("[" + where + "] " + line);
}

}  // namespace

void detail::rethrow_at(const std::string& where) {
  try {
    throw;
  } catch (const ShapeError& error) {
    throw_at(where, error);
  } catch (const LayoutError& error) {
    throw_at(where, error);
  } catch (const MeshError& error) {
    throw_at(where, error);
  } catch (const ConfigError& error) {
    throw_at(where, error);
  } catch (const StateError& error) {
    throw_at(where, error);
  }
}

Error::Error(const std::string& where, const std::string& expected, const std::string& received,
             const std::string& fix)
    : std::runtime_error(compose(where, expected, received, fix)) {}

}  // namespace tessera
