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

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(),
                                                                  &EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  EVP_MD_CTX* const context = state_->context.get();
  if (!context || EVP_DigestInit_ex(context, EVP_sha256(), nullptr) != 1) throw std::bad_alloc();
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size());
}

std::string Sha256::digits() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> value{};
  unsigned count = 0;
  EVP_DigestFinal_ex(state_->context.get(), value.data(), &count);
  return hexadecimal(value.data(), count);
}

std::string sha256_of(int descriptor) {
  Sha256 digest;
  std::vector<std::byte> chunk(buffer_bytes);
  off_t offset = 0;
  while (true) {
    const ssize_t got = ::pread(descriptor, chunk.data(), chunk.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return "";
    if (got == 0) return digest.digits();
    digest.update({chunk.data(), static_cast<size_t>(got)});
    offset += got;
  }
}

}  // namespace tessera::detail
