#include <tessera/datasets/files/sha256.hpp>

#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <new>
#include <vector>

namespace tessera::detail {
namespace {

constexpr size_t buffer_bytes = size_t{1} << 18;

std::string hexadecimal(const unsigned char* bytes, unsigned count) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < count; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

}  // namespace

std::string sha256_of(int descriptor) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest(EVP_MD_CTX_new(),
                                                                       &EVP_MD_CTX_free);
  if (!digest || EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
  std::vector<unsigned char> chunk(buffer_bytes);
  off_t offset = 0;
  while (true) {
    const ssize_t got = ::pread(descriptor, chunk.data(), chunk.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return "";
    if (got == 0) break;
    EVP_DigestUpdate(digest.get(), chunk.data(), static_cast<size_t>(got));
    offset += got;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> value{};
  unsigned count = 0;
  EVP_DigestFinal_ex(digest.get(), value.data(), &count);
  return hexadecimal(value.data(), count);
}

}  // namespace tessera::detail
