#include "tests/processes/garbage.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <stdexcept>
#include <utility>

namespace tessera::test {

using namespace detail;

namespace {

const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The header of an HTTP/2 frame: length in 24 bits, type, flags, stream.
std::string frame(uint32_t length, int type, int flags, uint32_t stream) {
  std::string head;
  for (const int shift : {16, 8, 0}) head += static_cast<char>(length >> shift);
  head += static_cast<char>(type);
  head += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) head += static_cast<char>(stream >> shift);
  return head;
}

}  // namespace

std::string Garbage::random_bytes(size_t count) {
  std::string bytes(count, ' ');
  for (char& byte : bytes) byte = static_cast<char>(random_());
  return bytes;
}

void Garbage::send(int port, const std::string& bytes) {
  FileDescriptor connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("cannot connect");
  }
  // The server may have closed it meanwhile, which is right.
  ::send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  open_.push_back(std::move(connection));
}

void Garbage::send_to(const std::vector<int>& ports) {
  const std::string settings = preface + frame(0, 4, 0, 0);
  for (const int port : ports) {
    send(port, "");
    send(port, random_bytes(10000));
    send(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    send(port, preface.substr(0, 10));
    send(port, preface + random_bytes(5000));
    send(port, settings + frame(0xffffff, 0, 0, 1) + random_bytes(20000));
    send(port, settings + frame(0x3fff, 1, 4, 1) + random_bytes(0x3fff));
    send(port, settings + frame(8, 6, 0, 0) + "12345678" + frame(4, 8, 0, 0) + "\x7f\xff\xff\xff");
    send(port, std::string(100000, '\0'));
    send(port, "\x16\x03\x01\x02\x05\x01" + random_bytes(517));
  }
}

}  // namespace tessera::test
