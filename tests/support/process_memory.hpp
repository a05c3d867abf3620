#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace tessera::test {

/// Bytes that number_in_proc() has read so far.
inline std::atomic<int64_t> bytes_read_in_proc = 0;

/// Returns a number of a file in /proc/self, such as "RssAnon:" of "status"; 0 if it has none.
inline int64_t number_in_proc(const char* file, const std::string& name) {
  std::ifstream in(std::string("/proc/self/") + file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  bytes_read_in_proc += static_cast<int64_t>(text.size());
  const size_t at = text.find(name);
  return at == std::string::npos ? 0 : std::stoll(text.substr(at + name.size()));
}

/// Returns the memory of this process that no file backs.
inline int64_t anonymous_bytes() { return number_in_proc("status", "RssAnon:") * 1024; }

/// Measures the most anonymous_bytes() of this process during its lifetime.
class AnonymousPeak {
 public:
  ~AnonymousPeak() { end(); }
  int64_t end() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
    return peak_;
  }

 private:
  std::atomic<bool> ended_ = false;
  int64_t peak_ = 0;
  std::thread thread_{[this] {
    while (!ended_) {
      peak_ = std::max(peak_, anonymous_bytes());
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }};
};

}  // namespace tessera::test
