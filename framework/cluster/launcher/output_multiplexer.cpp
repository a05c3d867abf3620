#include <tessera/framework/cluster/launcher/output_multiplexer.hpp>

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <tessera/framework/base/internal/terminal.hpp>

namespace tessera::detail {
namespace {

// Limits the memory taken by a program that writes no line ends.
constexpr size_t max_line_bytes = 1 << 20;

}  // namespace

void LineSplitter::add(std::string_view bytes,
                       const std::function<void(const std::string&)>& line) {
  for (const char c : bytes) {
    const bool ends = c == '\n' || text_.size() >= max_line_bytes;
    if (ends) {
      line(text_);
      text_.clear();
    } else if (returned_) {
      text_.clear();
    }
    returned_ = c == '\r';
    if (c != '\n' && c != '\r') text_ += c;
  }
}

void LineSplitter::finish(const std::function<void(const std::string&)>& line) {
  if (!text_.empty()) line(text_);
  text_.clear();
  returned_ = false;
}

OutputMultiplexer::OutputMultiplexer() {
  for (int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    colour_[descriptor] = shows_colors(descriptor);
  }
}

void OutputMultiplexer::add(int descriptor, const std::string& label, int colour,
                            const std::string& line) {
  std::string prefix = "[" + label + "] ";
  // Six colours from red to cyan, which differ from the default colours.
  if (colour_[descriptor]) {
    prefix = "\x1b[3" + std::to_string(1 + colour % 6) + "m" + prefix + "\x1b[0m";
  }
  add(descriptor, prefix + line);
}

void OutputMultiplexer::add(int descriptor, const std::string& line) {
  bytes_ += line.size() + 1;
  const bool joins = !queue_.empty() && queue_.back().descriptor == descriptor &&
                     queue_.back().text.size() < PIPE_BUF;
  if (!joins) queue_.push_back({descriptor, ""});
  queue_.back().text += line + '\n';
}

void OutputMultiplexer::write() {
  if (queue_.empty()) return;
  Chunk& chunk = queue_.front();
  // A writable pipe accepts at least this many bytes without blocking.
  const size_t size = std::min<size_t>(chunk.text.size(), PIPE_BUF);
  ssize_t written = ::write(chunk.descriptor, chunk.text.data(), size);
  if (written < 0 && (errno == EINTR || errno == EAGAIN)) return;
  // There is no reader any more: drop the output, the processes continue.
  if (written < 0) written = static_cast<ssize_t>(chunk.text.size());
  bytes_ -= static_cast<size_t>(written);
  chunk.text.erase(0, static_cast<size_t>(written));
  if (chunk.text.empty()) queue_.pop_front();
}

}  // namespace tessera::detail
