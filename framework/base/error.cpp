#include <tessera/framework/base/error.hpp>

namespace tessera {

using namespace detail;

namespace {

std::string sentence(const std::string& text) {
  return text.empty() || text.back() == '.' ? text : text + ".";
}

/// Strips the trailing blank of a layer without a name yet: "Dense ".
std::string trimmed(const std::string& place) {
  return place.substr(0, place.find_last_not_of(' ') + 1);
}

std::string compose(const std::string& where, const std::string& expected,
                    const std::string& received, const std::string& fix) {
  std::string text = where.empty() ? "" : "[" + trimmed(where) + "]";
  if (!expected.empty()) text += " " + sentence(expected);
  if (!received.empty()) text += " Received: " + sentence(received);
  if (!fix.empty()) text += " To fix: " + sentence(fix);
  return text.rfind(' ', 0) == 0 ? text.substr(1) : text;
}

/// Rethrows an error of class E with `untrimmed` as its place.
template <class E>
[[noreturn]] void throw_at(const std::string& untrimmed, const E& error) {
  const std::string place = trimmed(untrimmed), line = error.what();
  const size_t named = line.find(place);
  if (named != std::string::npos && named < line.find("] ")) throw;
  if (line.front() == '[') throw E("[" + place + ", " + line.substr(1));
  throw E("[" + place + "] " + line);
}

}  // namespace

void detail::rethrow_at(const std::string& place) {
  try {
    throw;
  } catch (const ShapeError& error) {
    throw_at(place, error);
  } catch (const LayoutError& error) {
    throw_at(place, error);
  } catch (const MeshError& error) {
    throw_at(place, error);
  } catch (const ConfigError& error) {
    throw_at(place, error);
  } catch (const StateError& error) {
    throw_at(place, error);
  }
}

Error::Error(const std::string& where, const std::string& expected, const std::string& received,
             const std::string& fix)
    : std::runtime_error(compose(where, expected, received, fix)) {}

}  // namespace tessera
