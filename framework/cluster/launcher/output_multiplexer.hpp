#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace tessera::detail {

/// Cuts what a process writes into lines. A carriage return goes back to the line's beginning, as
/// on a terminal: of a progress bar the last state is left.
class LineCutter {
 public:
  /// Calls `line` for each line that `bytes` end, without its end.
  void add(std::string_view bytes, const std::function<void(const std::string&)>& line);
  /// Calls `line` for a last line that nothing ends.
  void finish(const std::function<void(const std::string&)>& line);

 private:
  std::string text_;
  bool returned_ = false;  ///< whether a carriage return was the last byte
};

/// Lines on their way to the standard output and error, in the order they came, written without
/// ever waiting for a reader that is slow.
class OutputMultiplexer {
 public:
  OutputMultiplexer();
  /// A line behind "[label] ", which has one of six colours on a terminal.
  void add(int descriptor, const std::string& label, int colour, const std::string& line);
  /// A line as it is.
  void add(int descriptor, const std::string& line);

  bool empty() const { return queue_.empty(); }
  /// Whether so much waits that no more should be read.
  bool full() const { return bytes_ > max_bytes; }
  /// The descriptor that the next line goes to; -1 if there is none.
  int descriptor() const { return queue_.empty() ? -1 : queue_.front().descriptor; }
  /// Writes as much of it as fits; to be called when the descriptor can be written to.
  void write();

 private:
  static constexpr size_t max_bytes = 1 << 18;
  struct Piece {
    int descriptor;
    std::string text;
  };
  std::deque<Piece> queue_;
  size_t bytes_ = 0;
  bool colour_[3] = {};
};

}  // namespace tessera::detail
