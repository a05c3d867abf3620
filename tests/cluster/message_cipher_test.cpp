#include <tessera/framework/cluster/internal/message_cipher.hpp>

#include <string>
#include <vector>

#include <tessera/framework/cluster/coordination/peer_handshake.hpp>

#include "tests/support/catch.hpp"

namespace message_cipher_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

const std::string key(32, 'k');

std::string sealed(MessageCipher& cipher, std::string message, size_t head) {
  message.append(MessageCipher::tag_bytes, '\0');
  cipher.seal(message, head);
  return message;
}

/// Returns the message without its tag; "changed" if it does not open.
std::string opened(MessageCipher& cipher, std::string message, size_t head) {
  if (!cipher.open(message, head)) return "changed";
  message.resize(message.size() - MessageCipher::tag_bytes);
  return message;
}

}  // namespace

TEST_CASE("messages open in the order in which they were sealed", "[cluster]") {
  for (const size_t head : {size_t{0}, size_t{3}, size_t{10}}) {
    MessageCipher sender(key);
    MessageCipher receiver(key);
    for (int i = 0; i < 300; ++i) {
      const std::string text = "headtext" + std::to_string(100 + i % 800).substr(1);
      const std::string message = sealed(sender, text, head);
      CHECK(message.substr(0, head) == text.substr(0, head));
      CHECK((message.find(text.substr(head)) == message.npos) == (head < text.size()));
      CHECK(opened(receiver, message, head) == text);
    }
  }
  MessageCipher sender(key);
  MessageCipher receiver(key);
  CHECK(opened(receiver, sealed(sender, "", 0), 0).empty());
}

TEST_CASE("the same text is never sealed to the same bytes", "[cluster]") {
  MessageCipher cipher(key);
  MessageCipher other(std::string(32, 'o'));
  const std::string first = sealed(cipher, "text", 0);
  CHECK(sealed(cipher, "text", 0) != first);
  CHECK(sealed(other, "text", 0) != first);
}

TEST_CASE("a changed bit, a repeated, missing or reordered message does not open", "[cluster]") {
  const size_t head = GENERATE(size_t{0}, size_t{2}, size_t{5});
  MessageCipher sender(key);
  const std::vector<std::string> messages = {sealed(sender, "first", head),
                                             sealed(sender, "after", head)};
  for (size_t bit = 0; bit < 8 * messages[0].size(); ++bit) {
    MessageCipher receiver(key);
    std::string changed = messages[0];
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    CHECK(opened(receiver, changed, head) == "changed");
  }
  MessageCipher repeated(key);
  CHECK(opened(repeated, messages[0], head) == "first");
  CHECK(opened(repeated, messages[0], head) == "changed");
  MessageCipher missing(key);
  CHECK(opened(missing, messages[1], head) == "changed");
  MessageCipher other(std::string(32, 'o'));
  CHECK(opened(other, messages[0], head) == "changed");
  // Another number of readable bytes.
  MessageCipher moved(key);
  CHECK(opened(moved, messages[0], head + 1 - 2 * (head / 5)) == "changed");
}

TEST_CASE("each direction of each connection has a key of its own", "[cluster]") {
  const std::string secret(32, 's');
  const SessionKeys rank = control_keys(secret, "hello", "nonce", false);
  const SessionKeys hub = control_keys(secret, "hello", "nonce", true);
  CHECK(rank.send == hub.receive);
  CHECK(rank.receive == hub.send);
  CHECK(rank.send != rank.receive);
  CHECK(rank.send.size() == 32);
  CHECK(control_keys(secret, "hello", "other", false).send != rank.send);
  CHECK(control_keys(secret, "other", "nonce", false).send != rank.send);
}

}  // namespace message_cipher_test
