#include <tessera/framework/cluster/internal/environment.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

constexpr int highest_port = 65535;

[[noreturn]] void fail_host_port(const std::string& where, const std::string& text) {
  throw ConfigError(where, "must be a host and a port", in_quotes(text),
                    "write for example 10.0.0.1:29500");
}

bool is_host(const std::string& host, bool six) {
  const auto fits = [six](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return letter || c == '.' || c == '-' || c == '_' || (six && (c == ':' || c == '%'));
  };
  return !host.empty() && std::all_of(host.begin(), host.end(), fits);
}

}  // namespace

HostPort read_host_port(const std::string& where, const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos) fail_host_port(where, text);
  std::string host = text.substr(0, colon);
  const bool six = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (six) host = host.substr(1, host.size() - 2);
  if (!is_host(host, six)) fail_host_port(where, text);
  return {host, read_integer(where + ", port", text.substr(colon + 1), 1, highest_port)};
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

int read_integer(const std::string& where, const std::string& text, int minimum, int maximum) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc{} && rest == end && number >= minimum && number <= maximum) return number;
  throw ConfigError(where, str("must be an integer from ", minimum, " to ", maximum),
                    in_quotes(text), str("set for example ", minimum));
}

int local_rank_of(const std::vector<HostPort>& addresses, int rank) {
  const auto end = addresses.begin() + rank;
  return static_cast<int>(std::count_if(
      addresses.begin(), end, [&](const HostPort& address) { return address.host == end->host; }));
}

Environment::Environment(EnvironmentLookup environment) : environment_(std::move(environment)) {
  if (!environment_) environment_ = [](const char* name) { return std::getenv(name); };
}

std::optional<std::string> Environment::find(const std::string& name) const {
  const char* text = environment_(name.c_str());
  if (text == nullptr || *text == '\0') return std::nullopt;
  return text;
}

std::string Environment::require(const std::string& name, const std::string& reason) const {
  if (auto text = find(name)) return *text;
  throw ConfigError(name, "must be set if " + reason + " is", "nothing",
                    "set " + name + ", or unset " + reason);
}

std::optional<int> Environment::find_integer(const std::string& name, int minimum,
                                             int maximum) const {
  const auto text = find(name);
  if (!text) return std::nullopt;
  return read_integer(name, *text, minimum, maximum);
}

int Environment::require_integer(const std::string& name, const std::string& reason, int minimum,
                                 int maximum) const {
  return read_integer(name, require(name, reason), minimum, maximum);
}

}  // namespace tessera::detail
