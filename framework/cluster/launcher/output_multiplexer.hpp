#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace tessera::detail {

/// Splits a process' output into lines. As on a terminal, a carriage return restarts the line, so
/// that only the last state of a progress bar remains.
class LineSplitter {
 public:
  /// Calls `line` for each line completed by `bytes`, without the line end.
  void add(std::string_view bytes, const std::function<void(const std::string&)>& line);
  /// Calls `line` for an unterminated last line.
  void finish(const std::function<void(const std::string&)>& line);

 private:
  std::string text_;
  bool returned_ = false;  ///< whether a carriage return was the last byte
};

/// Queue of lines for standard output and standard error, written in order and without ever
/// blocking on a slow reader.
class OutputMultiplexer {
 public:
  OutputMultiplexer();
  /// Queues a line prefixed with "[label] ", in one of six colours on a terminal.
  void add(int descriptor, const std::string& label, int colour, const std::string& line);
  /// Queues a line without a prefix.
  void add(int descriptor, const std::string& line);

  bool empty() const { return queue_.empty(); }
  /// Whether the queue is full, so that no more output should be read.
  bool full() const { return bytes_ > max_bytes; }
  /// Returns the descriptor of the next line; -1: the queue is empty.
  int descriptor() const { return queue_.empty() ? -1 : queue_.front().descriptor; }
  /// Writes as much as fits; to be called when the descriptor is writable.
  void write();

 private:
  static constexpr size_t max_bytes = 1 << 18;
  struct Chunk {
    int descriptor;
    std::string text;
  };
  std::deque<Chunk> queue_;
  size_t bytes_ = 0;
  bool colour_[3] = {};
};

}  // namespace tessera::detail
