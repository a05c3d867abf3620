#include <tessera/framework/base/internal/secret.hpp>

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

/// Shorter secrets could be brute-forced by anyone who has seen a proof made with them.
constexpr size_t min_secret_bytes = 32;
constexpr size_t max_secret_bytes = 4096;

std::string stripped(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

}  // namespace

std::string check_secret(const std::string& where, const std::string& secret) {
  if (secret.size() >= min_secret_bytes && secret.size() <= max_secret_bytes) return secret;
  throw ConfigError(where,
                    str("a secret has ", min_secret_bytes, " to ", max_secret_bytes, " characters"),
                    str(secret.size()), "generate one with: openssl rand -hex 32");
}

std::string read_private_file(const std::string& where, const std::string& path, size_t max_bytes) {
  const FileDescriptor file = open_descriptor(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (!file.valid()) fail_read(path);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) fail_read(path);
  const bool foreign = info.st_uid != ::geteuid() && info.st_uid != 0;
  if (!S_ISREG(info.st_mode) || foreign || (info.st_mode & 077) != 0) {
    throw ConfigError(where, "must name a file that only the user running this process can read",
                      in_quotes(path), "run: chmod 600 " + path);
  }
  std::string bytes(std::min(max_bytes, static_cast<size_t>(info.st_size)), '\0');
  const auto count = read_at(file.get(), 0, std::as_writable_bytes(std::span(bytes)));
  if (!count) fail_read(path);
  bytes.resize(*count);
  return bytes;
}

std::string read_secret_file(const std::string& where, const std::string& path) {
  return check_secret(path, stripped(read_private_file(where, path, max_secret_bytes + 1)));
}

bool same_secret(const std::string& one, const std::string& other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace tessera::detail
