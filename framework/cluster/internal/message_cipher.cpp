#include <tessera/framework/cluster/internal/message_cipher.hpp>

#include <openssl/evp.h>

#include <array>
#include <new>
#include <utility>

namespace tessera::detail {
namespace {

constexpr int tag_size = static_cast<int>(MessageCipher::tag_bytes);

unsigned char* bytes_of(std::span<char> data) {
  return reinterpret_cast<unsigned char*>(data.data());
}

/// OpenSSL fails only without memory here; a wrong tag is no failure.
void require_memory(int success) {
  if (success != 1) throw std::bad_alloc();
}

}  // namespace

MessageCipher::MessageCipher(std::string key)
    : key_(std::move(key)), context_(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free) {
  require_memory(context_ ? 1 : 0);
  require_memory(
      EVP_CipherInit_ex(context_.get(), EVP_aes_256_gcm(), nullptr, nullptr, nullptr, 1));
}

void MessageCipher::begin(int encrypt, std::span<char> head) {
  std::array<unsigned char, 12> nonce{};
  for (size_t i = 0; i < 8; ++i) nonce[i] = static_cast<unsigned char>(number_ >> (8 * i));
  const auto* key = reinterpret_cast<const unsigned char*>(key_.data());
  require_memory(EVP_CipherInit_ex(context_.get(), nullptr, nullptr, key, nonce.data(), encrypt));
  int size = 0;
  if (head.empty()) return;
  require_memory(EVP_CipherUpdate(context_.get(), nullptr, &size, bytes_of(head),
                                  static_cast<int>(head.size())));
}

void MessageCipher::seal(std::span<char> message, size_t head) {
  begin(1, message.first(head));
  const std::span<char> body = message.subspan(head, message.size() - head - tag_bytes);
  int size = 0;
  if (!body.empty()) {
    require_memory(EVP_EncryptUpdate(context_.get(), bytes_of(body), &size, bytes_of(body),
                                     static_cast<int>(body.size())));
  }
  std::array<unsigned char, 16> rest{};
  require_memory(EVP_EncryptFinal_ex(context_.get(), rest.data(), &size));
  require_memory(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_GCM_GET_TAG, tag_size,
                                     message.last(tag_bytes).data()));
  ++number_;
}

bool MessageCipher::open(std::span<char> message, size_t head) {
  begin(0, message.first(head));
  const std::span<char> body = message.subspan(head, message.size() - head - tag_bytes);
  int size = 0;
  if (!body.empty()) {
    require_memory(EVP_DecryptUpdate(context_.get(), bytes_of(body), &size, bytes_of(body),
                                     static_cast<int>(body.size())));
  }
  require_memory(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_GCM_SET_TAG, tag_size,
                                     message.last(tag_bytes).data()));
  std::array<unsigned char, 16> rest{};
  ++number_;
  return EVP_DecryptFinal_ex(context_.get(), rest.data(), &size) == 1;
}

}  // namespace tessera::detail
