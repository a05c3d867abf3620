#include <tessera/framework/cluster/internal/job_secret.hpp>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

#include <array>
#include <new>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/hex.hpp>
#include <tessera/framework/base/internal/secret.hpp>
#include <tessera/framework/cluster/internal/environment.hpp>

namespace tessera::detail {
namespace {

constexpr const char* secret_variable = "TESSERA_SECRET";
constexpr const char* secret_file_variable = "TESSERA_SECRET_FILE";
constexpr const char* how_to_make =
    "write one to a file with \"openssl rand -hex 32\", the same for all processes, and set "
    "TESSERA_SECRET_FILE";
constexpr size_t nonce_bytes = 32;

std::string find_secret(const Environment& variables) {
  const auto text = variables.find(secret_variable);
  const auto path = variables.find(secret_file_variable);
  if (text && path) {
    throw ConfigError(secret_variable, str("must not be set together with ", secret_file_variable),
                      "both", str("unset ", secret_variable));
  }
  if (text) return check_secret(secret_variable, *text);
  return path ? read_secret_file(secret_file_variable, *path) : "";
}

}  // namespace

JobAccess job_access(const Cluster& cluster, const EnvironmentLookup& environment) {
  const Environment variables(environment);
  const auto insecure = variables.find_integer("TESSERA_INSECURE", 0, 1);
  const auto encrypt = variables.find_integer("TESSERA_ENCRYPT", 0, 1);
  JobAccess access{cluster.secret, cluster.insecure || insecure == 1,
                   cluster.encrypt || encrypt == 1};
  access.secret = access.secret.empty() ? find_secret(variables)
                                        : check_secret("Cluster::secret", access.secret);
  return access;
}

std::string make_secret() { return to_hex(random_nonce()); }

std::string check_access(const std::string& where, const std::string& who, const std::string& host,
                         const JobAccess& access) {
  if (access.encrypt && access.secret.empty()) {
    throw ConfigError(where, "encryption (--encrypt, TESSERA_ENCRYPT=1) needs the job's secret",
                      "no secret", str(how_to_make, ", or start the processes with launch"));
  }
  if (is_loopback(host) || !access.secret.empty()) return "";
  if (access.insecure) {
    return str("Warning: [", where, "] ", who, " listens beyond this host, at ", host,
               ", without a secret: whoever reaches it may take part");
  }
  throw ConfigError(
      where, str(who, " needs a secret to listen beyond this host, at ", host), "no secret",
      str(how_to_make, "; or, on a trusted network, pass --insecure or set TESSERA_INSECURE=1"));
}

std::string random_nonce() {
  std::string bytes(nonce_bytes, '\0');
  if (::getentropy(bytes.data(), bytes.size()) == 0) return bytes;
  throw CommError("secret", "the system must provide random numbers", "none", "see getrandom(2)");
}

std::string proof_of(const std::string& secret, std::initializer_list<std::string_view> texts) {
  // Length prefixes make the encoding of a list of texts unambiguous.
  std::string bytes;
  for (const std::string_view text : texts) bytes.append(str(text.size(), ":")).append(text);
  std::array<unsigned char, EVP_MAX_MD_SIZE> value{};
  unsigned size = 0;
  if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), value.data(),
           &size) == nullptr) {
    throw std::bad_alloc();
  }
  return {reinterpret_cast<const char*>(value.data()), size};
}

}  // namespace tessera::detail
