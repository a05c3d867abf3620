#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/secret.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/coordination/coordination_socket.hpp>
#include <tessera/framework/cluster/internal/environment.hpp>
#include <tessera/framework/cluster/membership/etcd_gateway.hpp>

namespace tessera::detail {
namespace {

constexpr const char* plain_scheme = "http://";
constexpr const char* tls_scheme = "https://";

/// Parses one URL; what it says about the user goes to `access`. Errors do not show passwords.
EtcdEndpoint read_etcd_url(const std::string& where, std::string text, EtcdAccess& access) {
  EtcdEndpoint endpoint;
  endpoint.tls = text.starts_with(tls_scheme);
  const bool known = endpoint.tls || text.starts_with(plain_scheme);
  if (known) text.erase(0, std::string(endpoint.tls ? tls_scheme : plain_scheme).size());
  if (const size_t at = text.rfind('@'); known && at != text.npos) {
    const std::string user = text.substr(0, at);
    const size_t colon = user.find(':');
    access.user = user.substr(0, colon);
    if (colon != user.npos) access.password = user.substr(colon + 1);
    text.erase(0, at + 1);
  }
  if (text.ends_with('/')) text.pop_back();
  if (!known) {
    throw ConfigError(where, "names URLs of etcd", in_quotes(text),
                      "write for example https://host1:2379,https://host2:2379");
  }
  // A port is optional, and an IPv6 address has colons of its own.
  const size_t colon = text.rfind(':');
  const bool has_port = colon != text.npos && text.find(']', colon) == text.npos;
  const HostPort address = read_host_port(where, has_port ? text : str(text, ":", endpoint.port));
  endpoint.host = address.host;
  endpoint.port = address.port;
  return endpoint;
}

void read_credentials(const Environment& variables, EtcdAccess& access) {
  if (const auto user = variables.find("TESSERA_ETCD_USER")) access.user = *user;
  const char* const text = "TESSERA_ETCD_PASSWORD";
  const char* const file = "TESSERA_ETCD_PASSWORD_FILE";
  const auto password = variables.find(text);
  const auto path = variables.find(file);
  if (password && path) {
    throw ConfigError(text, str("must not be set together with ", file), "both",
                      str("unset ", text));
  }
  if (password) access.password = *password;
  if (path) {
    constexpr size_t max_password = 4096;
    access.password = read_private_file(file, *path, max_password);
    while (access.password.ends_with('\n')) access.password.pop_back();
  }
  if (access.user.empty() != access.password.empty()) {
    throw ConfigError(text, "user and password of etcd are given together",
                      access.user.empty() ? "a password alone" : "a user alone",
                      "set TESSERA_ETCD_USER and TESSERA_ETCD_PASSWORD_FILE, or neither");
  }
}

}  // namespace

std::string EtcdEndpoint::url() const {
  return (tls ? tls_scheme : plain_scheme) + address_text(host, port);
}

EtcdAccess etcd_access(const std::string& where, const std::string& text,
                       const EnvironmentLookup& environment, bool insecure) {
  const Environment variables(environment);
  EtcdAccess access;
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    access.endpoints.push_back(read_etcd_url(where, text.substr(from, comma - from), access));
    from = comma + 1;
  }
  read_credentials(variables, access);
  access.ca = variables.find("TESSERA_ETCD_CA").value_or("");
  access.certificate = variables.find("TESSERA_ETCD_CERTIFICATE").value_or("");
  access.key = variables.find("TESSERA_ETCD_KEY").value_or("");
  if (access.certificate.empty() != access.key.empty()) {
    throw ConfigError("TESSERA_ETCD_CERTIFICATE", "a certificate and its key are given together",
                      access.key.empty() ? "a certificate alone" : "a key alone",
                      "set TESSERA_ETCD_KEY, too, or neither");
  }
  for (const EtcdEndpoint& each : access.endpoints) {
    if (access.password.empty() || each.tls || is_loopback(each.host) || insecure) continue;
    throw ConfigError(where, "a password for etcd crosses the network under TLS only", each.url(),
                      "write https://, or, on a trusted network, set TESSERA_INSECURE=1");
  }
  return access;
}

}  // namespace tessera::detail
