#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct evp_cipher_ctx_st;

namespace tessera::detail {

/// Keys of a connection, one for each direction.
struct SessionKeys {
  std::string send;
  std::string receive;
};

/// Authenticates the messages of one direction of a connection, and encrypts them if asked to, by
/// AES-256-GCM. The nonce is the message's number, which is not sent: a message that was changed,
/// repeated, left out or reordered does not open. A message is `head` bytes that stay readable,
/// bytes to encrypt, and tag_bytes bytes for the tag, which covers all of them. Not thread-safe.
class MessageCipher {
 public:
  static constexpr size_t tag_bytes = 16;

  /// `key`: 32 bytes, which only this direction of this connection uses.
  explicit MessageCipher(std::string key);

  /// Encrypts the next message in place and writes its tag.
  void seal(std::span<char> message, size_t head);
  /// Decrypts a message in place. Returns false, and leaves it unusable, if it is not the next one
  /// as it was sealed.
  bool open(std::span<char> message, size_t head);

 private:
  void begin(int encrypt, std::span<char> head);

  std::string key_;
  std::unique_ptr<evp_cipher_ctx_st, void (*)(evp_cipher_ctx_st*)> context_;
  uint64_t number_ = 0;
};

}  // namespace tessera::detail
