#include <tessera/framework/cluster/coordination/wire_format.hpp>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"

namespace wire_format_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("frames are split from a stream that arrives in any pieces") {
  std::string stream;
  for (int i = 0; i < 20; ++i) stream += encode_frame(FrameType::gather, std::string(i * 7, 'a'));
  for (const size_t piece : {size_t{1}, size_t{5}, size_t{100}, stream.size()}) {
    FrameBuffer buffer(1000);
    size_t count = 0;
    for (size_t at = 0; at < stream.size(); at += piece) {
      buffer.append(std::string_view(stream).substr(at, piece));
      while (const auto frame = buffer.next()) {
        CHECK(frame->type == FrameType::gather);
        CHECK(frame->body == std::string(7 * count++, 'a'));
      }
    }
    CHECK(count == 20);
  }
}

TEST_CASE("data that is no frame is refused at its first bytes") {
  const auto next = [](const std::string& bytes) {
    FrameBuffer buffer(100);
    buffer.append(bytes);
    return buffer.next();
  };
  CHECK_THROWS_AS(next("G"), BadFrame);
  CHECK_THROWS_AS(next("GET / HTTP/1.1\r\n"), BadFrame);
  CHECK_THROWS_AS(next("TSRX"), BadFrame);
  CHECK_FALSE(next("TS"));
  CHECK_FALSE(next(""));
  const std::string frame = encode_frame(FrameType::hello, std::string(100, 'x'));
  CHECK(next(frame));
  CHECK_FALSE(next(frame.substr(0, 50)));
  // One byte over the limit; none of the body has arrived yet.
  CHECK_THROWS_AS(next(encode_frame(FrameType::hello, std::string(101, 'x')).substr(0, 9)),
                  BadFrame);
  std::string other = frame;
  other[8] = 100;
  CHECK_THROWS_AS(next(other), BadFrame);
}

TEST_CASE("a body reads back as it was written") {
  const CallRecord call{118, 0xfedcba9876543210, -1, "all_reduce of w", true};
  BodyWriter writer;
  writer.number(7).text("a\0b").call(call).last_call({}).last_call({{}, call});
  writer.peer({2, 4711, "host", "::1"});
  BodyReader reader(writer.bytes());
  CHECK(reader.number() == 7);
  CHECK(reader.text() == "a");
  const CallRecord read = reader.call();
  CHECK(read.number == 118);
  CHECK(read.hash == call.hash);
  CHECK(read.step == -1);
  CHECK(read.text == call.text);
  CHECK(read.done);
  CHECK_FALSE(reader.last_call());
  CHECK(reader.last_call()->number == 118);
  const Peer peer = reader.peer();
  CHECK(peer.describe() == "rank 2 (pid 4711 on host)");
  CHECK(peer.address == "::1");
  reader.finish();
}

TEST_CASE("truncated and extended bodies are refused") {
  const std::string body = encode_hello({"job", 4, {2, 4711, "host", "address"}});
  CHECK(decode_hello(body).peer.rank == 2);
  for (size_t size = 0; size < body.size(); ++size) {
    CHECK_THROWS_AS(decode_hello(body.substr(0, size)), BadFrame);
  }
  CHECK_THROWS_AS(decode_hello(body + "x"), BadFrame);
  std::string newer = body;
  newer[0] = 4;
  CHECK_THROWS_AS(decode_hello(newer), BadFrame);
  // A text length near 2^64.
  std::string huge = body;
  for (size_t i = 8; i < 16; ++i) huge[i] = '\xff';
  CHECK_THROWS_AS(decode_hello(huge), BadFrame);
  BodyWriter many;
  many.number(uint64_t{1} << 60);
  CHECK_THROWS_AS(BodyReader(many.bytes()).count(40), BadFrame);
}

}  // namespace wire_format_test
