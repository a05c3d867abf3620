#include <tessera/framework/cluster/internal/job_secret.hpp>

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <new>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/internal/environment.hpp>

namespace tessera::detail {
namespace {

constexpr const char* secret_variable = "TESSERA_SECRET";
constexpr const char* secret_file_variable = "TESSERA_SECRET_FILE";
constexpr size_t nonce_bytes = 32;
/// Fewer could be tried one after the other by whoever has seen a proof.
constexpr size_t min_secret_bytes = 32;
constexpr size_t max_secret_bytes = 4096;

std::string stripped(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::string checked(const std::string& where, const std::string& secret) {
  if (secret.size() >= min_secret_bytes && secret.size() <= max_secret_bytes) return secret;
  throw ConfigError(where, str("a secret has ", min_secret_bytes, " to ", max_secret_bytes,
                               " characters"),
                    str(secret.size()), "draw one by: openssl rand -hex 32");
}

std::string read_secret(const std::string& path) {
  const FileDescriptor file = open_descriptor(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (!file.valid()) fail_read(path);
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) fail_read(path);
  const bool foreign = facts.st_uid != ::geteuid() && facts.st_uid != 0;
  if (!S_ISREG(facts.st_mode) || foreign || (facts.st_mode & 077) != 0) {
    throw ConfigError(secret_file_variable, "names a file that only its owner, who runs this, reads",
                      in_quotes(path), "write: chmod 600 " + path);
  }
  std::array<char, max_secret_bytes + 1> bytes{};
  const ssize_t count = ::read(file.get(), bytes.data(), bytes.size());
  if (count < 0) fail_read(path);
  return checked(path, stripped({bytes.data(), static_cast<size_t>(count)}));
}

std::string find_secret(const Environment& variables) {
  const auto text = variables.find(secret_variable);
  const auto path = variables.find(secret_file_variable);
  if (text && path) {
    throw ConfigError(secret_variable, str("is not set beside ", secret_file_variable), "both",
                      str("unset ", secret_variable));
  }
  if (text) return checked(secret_variable, *text);
  return path ? read_secret(*path) : "";
}

}  // namespace

JobAccess job_access(const Cluster& cluster, const EnvironmentLookup& environment) {
  const Environment variables(environment);
  const auto insecure = variables.find_integer("TESSERA_INSECURE", 0, 1);
  JobAccess access{cluster.secret, cluster.insecure || insecure == 1};
  access.secret = access.secret.empty() ? find_secret(variables)
                                        : checked("Cluster::secret", access.secret);
  return access;
}

std::string make_secret() {
  std::string digits;
  for (const char byte : random_nonce()) {
    constexpr std::string_view all = "0123456789abcdef";
    digits += all[static_cast<uint8_t>(byte) >> 4];
    digits += all[static_cast<uint8_t>(byte) & 15];
  }
  return digits;
}

std::string check_access(const std::string& where, const std::string& who, const std::string& host,
                         const JobAccess& access) {
  if (is_loopback(host) || !access.secret.empty()) return "";
  if (access.insecure) {
    return str("Warning: [", where, "] ", who, " listens beyond this host, at ", host,
               ", without a secret: whoever reaches it may take part");
  }
  throw ConfigError(where, str(who, " listens beyond this host, at ", host,
                               ", only for those that know the secret of the job"),
                    "no secret",
                    str("put one into a file by \"openssl rand -hex 32\", the same for all "
                        "processes, and set ", secret_file_variable,
                        "; or, where nobody else is, pass --insecure or set TESSERA_INSECURE=1"));
}

std::string random_nonce() {
  std::string bytes(nonce_bytes, '\0');
  if (::getentropy(bytes.data(), bytes.size()) == 0) return bytes;
  throw CommError("secret", "the system has random numbers", "none", "see getrandom(2)");
}

std::string proof_of(const std::string& secret, std::initializer_list<std::string_view> texts) {
  // Each behind its length: no other texts are the same bytes.
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

bool same_proof(const std::string& one, const std::string& other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace tessera::detail
