#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/checkpoint_writer.hpp>

namespace tessera::test {

using namespace detail;

/// Lets two processes exchange texts. Created before the second is forked. Uses no call of IoCall.
class TextPair {
 public:
  TextPair() {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) != 0) ends_ = {-1, -1};
  }
  ~TextPair() {
    for (const int end : ends_) {
      if (end >= 0) ::close(end);
    }
  }
  TextPair(const TextPair&) = delete;
  TextPair& operator=(const TextPair&) = delete;

  /// Makes this process `rank`. Closes the other's end, so that its death is noticed.
  CheckpointWriterOptions act_as(int rank) {
    ::close(ends_[static_cast<size_t>(1 - rank)]);
    ends_[static_cast<size_t>(1 - rank)] = -1;
    return {.rank = rank, .writers = 2, .gather = [this, rank](const std::string& text) {
              return gather(rank, text);
            }};
  }
  /// Closes both ends: this process is neither rank.
  void leave() {
    for (int& end : ends_) {
      ::close(end);
      end = -1;
    }
  }

 private:
  std::vector<std::string> gather(int rank, const std::string& text) const {
    const int end = ends_[static_cast<size_t>(rank)];
    const uint64_t size = text.size();
    // Errors are ignored: the other process may have ended.
    ::send(end, &size, sizeof(size), MSG_NOSIGNAL);
    ::send(end, text.data(), text.size(), MSG_NOSIGNAL);
    uint64_t length = 0;
    receive(end, &length, sizeof(length));
    std::string other(length, '\0');
    receive(end, other.data(), other.size());
    if (rank == 0) return {text, other};
    return {other, text};
  }

  static void receive(int end, void* bytes, size_t size) {
    if (size == 0 || ::recv(end, bytes, size, MSG_WAITALL) == static_cast<ssize_t>(size)) return;
    throw CommError("pair", "the other process answers", "its end", "");
  }

  std::array<int, 2> ends_{-1, -1};
};

}  // namespace tessera::test
