#include <tessera/framework/cluster/coordination/wire_format.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

constexpr uint32_t magic = 0x43525354;  // "TSRC"
constexpr uint64_t protocol_version = 3;
constexpr size_t head_bytes = 9;

void put(std::string& out, uint64_t value, int count) {
  for (int i = 0; i < count; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

uint64_t get(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

/// Returns the number of bytes at the front of a frame that are not encrypted.
size_t readable_bytes(const FrameProtection& protection, size_t body) {
  return protection.encrypts ? head_bytes : head_bytes + body;
}

}  // namespace

std::string encode_frame(FrameType type, std::string_view body, FrameProtection* protection) {
  std::string bytes;
  bytes.reserve(head_bytes + body.size() + MessageCipher::tag_bytes);
  put(bytes, magic, 4);
  put(bytes, body.size(), 4);
  bytes += static_cast<char>(type);
  bytes.append(body);
  if (protection == nullptr) return bytes;
  bytes.append(MessageCipher::tag_bytes, '\0');
  protection->cipher.seal(bytes, readable_bytes(*protection, body.size()));
  return bytes;
}

void FrameBuffer::fail(const std::string& received) const {
  if (protection_) throw ChangedFrame(received);
  throw BadFrame(received);
}

std::optional<Frame> FrameBuffer::next() {
  std::string expected;
  put(expected, magic, 4);
  const std::string_view bytes = std::string_view(bytes_).substr(begin_);
  if (!expected.starts_with(bytes.substr(0, 4))) {
    fail(str("bytes that begin with ", in_quotes(bytes.substr(0, 4))));
  }
  const uint64_t size = bytes.size() < head_bytes ? 0 : get(bytes.substr(4, 4));
  if (size > max_body_) fail(str("a frame of ", size, " bytes"));
  const uint64_t total = head_bytes + size + (protection_ ? MessageCipher::tag_bytes : 0);
  if (bytes.size() < total) {
    bytes_.erase(0, std::exchange(begin_, 0));
    return std::nullopt;
  }
  if (protection_ && !protection_->cipher.open({bytes_.data() + begin_, total},
                                               readable_bytes(*protection_, size))) {
    fail("a frame with a wrong tag");
  }
  const auto type = static_cast<uint8_t>(bytes[8]);
  if (type > static_cast<uint8_t>(FrameType::members)) {
    throw BadFrame(str("a frame of type ", int{type}));
  }
  begin_ += total;
  return Frame{static_cast<FrameType>(type), std::string(bytes.substr(head_bytes, size))};
}

void FrameBuffer::clear() {
  bytes_.clear();
  begin_ = 0;
}

BodyWriter& BodyWriter::number(uint64_t value) {
  put(bytes_, value, 8);
  return *this;
}

BodyWriter& BodyWriter::text(std::string_view value) {
  number(value.size());
  bytes_.append(value);
  return *this;
}

BodyWriter& BodyWriter::call(const CallRecord& call) {
  number(call.number).number(call.hash).number(static_cast<uint64_t>(call.step));
  number(call.done ? 1 : 0).text(call.text).number(call.after).number(call.others);
  number(call.ranks.size());
  for (const int rank : call.ranks) number(static_cast<uint64_t>(rank));
  return *this;
}

BodyWriter& BodyWriter::last_call(const std::vector<CallRecord>& calls) {
  number(calls.empty() ? 0 : 1);
  return calls.empty() ? *this : call(calls.back());
}

BodyWriter& BodyWriter::peer(const Peer& peer) {
  number(static_cast<uint64_t>(peer.rank)).number(static_cast<uint64_t>(peer.pid));
  return text(peer.host).text(peer.address);
}

std::string_view BodyReader::take(size_t count) {
  if (count > bytes_.size()) throw BadFrame("a frame that ends too early");
  const std::string_view taken = bytes_.substr(0, count);
  bytes_.remove_prefix(count);
  return taken;
}

uint64_t BodyReader::number() { return get(take(8)); }

size_t BodyReader::count(size_t bytes_each) {
  const uint64_t count = number();
  if (count > bytes_.size() / bytes_each) throw BadFrame("a frame that ends too early");
  return count;
}

std::string BodyReader::text() { return std::string(take(number())); }

CallRecord BodyReader::call() {
  CallRecord call;
  call.number = number();
  call.hash = number();
  call.step = static_cast<int64_t>(number());
  call.done = number() != 0;
  call.text = text();
  call.after = number();
  call.others = number();
  call.ranks.resize(count(sizeof(uint64_t)));
  for (int& rank : call.ranks) {
    rank = static_cast<int>(std::min<uint64_t>(number(), std::numeric_limits<int>::max()));
  }
  return call;
}

std::optional<CallRecord> BodyReader::last_call() {
  if (number() == 0) return std::nullopt;
  return call();
}

Peer BodyReader::peer() {
  Peer peer;
  const auto rank = static_cast<int64_t>(number());
  if (rank < std::numeric_limits<int>::min() || rank > std::numeric_limits<int>::max()) {
    throw BadFrame("a rank beyond 32 bits");
  }
  peer.rank = static_cast<int>(rank);
  peer.pid = static_cast<int64_t>(number());
  peer.host = text();
  peer.address = text();
  return peer;
}

void BodyReader::finish() const {
  if (!bytes_.empty()) throw BadFrame("a frame that is too long");
}

std::string encode_hello(const Hello& hello) {
  BodyWriter body;
  body.number(protocol_version).text(hello.job).number(static_cast<uint64_t>(hello.size));
  body.peer(hello.peer).text(hello.nonce);
  return body.number(hello.has_secret ? 1 : 0).number(hello.encrypts ? 1 : 0).bytes();
}

Hello decode_hello(std::string_view body) {
  BodyReader reader(body);
  if (const uint64_t version = reader.number(); version != protocol_version) {
    throw BadFrame(str("version ", version, " of the protocol, not ", protocol_version));
  }
  Hello hello;
  hello.job = reader.text();
  hello.size = static_cast<int64_t>(reader.number());
  hello.peer = reader.peer();
  hello.nonce = reader.text();
  hello.has_secret = reader.number() != 0;
  hello.encrypts = reader.number() != 0;
  reader.finish();
  return hello;
}

}  // namespace tessera::detail
