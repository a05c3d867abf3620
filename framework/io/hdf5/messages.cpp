#include <tessera/framework/io/hdf5/messages.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace tessera::detail::hdf5 {
namespace {

void write_all(const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t count = ::write(STDOUT_FILENO, bytes, size);
    if (count < 0 && errno == EINTR) continue;
    // The parent process has closed the connection.
    if (count <= 0) ::_exit(EXIT_FAILURE);
    bytes += count;
    size -= static_cast<size_t>(count);
  }
}

}  // namespace

void send(char kind, const void* bytes, size_t size) {
  char head[9] = {kind};
  for (int i = 0; i < 8; ++i) head[i + 1] = static_cast<char>(uint64_t{size} >> (8 * i));
  write_all(head, sizeof head);
  write_all(static_cast<const char*>(bytes), size);
}

void send(char kind, const std::string& text) { send(kind, text.data(), text.size()); }

bool receive(std::string& line) {
  static std::string buffer;
  size_t searched = 0;
  for (;;) {
    const size_t end = buffer.find('\n', searched);
    if (end != std::string::npos) {
      line = buffer.substr(0, end);
      buffer.erase(0, end + 1);
      return true;
    }
    searched = buffer.size();
    char chunk[65536];
    const ssize_t count = ::read(STDIN_FILENO, chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    buffer.append(chunk, static_cast<size_t>(count));
  }
}

}  // namespace tessera::detail::hdf5
