#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tessera::test {

using namespace detail;

/// Lets threads that stand for processes exchange texts. The call `ends_at` and later ones throw on
/// all, as they do when a process dies.
class TextHub {
 public:
  explicit TextHub(int ranks, size_t ends_at = SIZE_MAX)
      : texts_(static_cast<size_t>(ranks)), ends_at_(ends_at) {}

  /// Returns the texts of all ranks; the n-th call of one matches the n-th of the others.
  std::vector<std::string> gather(int rank, const std::string& text) {
    std::unique_lock<std::mutex> lock(mutex_);
    auto& mine = texts_[static_cast<size_t>(rank)];
    const size_t call = mine.size();
    mine.push_back(text);
    changed_.notify_all();
    const auto has = [&](const std::vector<std::string>& texts) { return texts.size() > call; };
    changed_.wait(lock, [&] { return std::all_of(texts_.begin(), texts_.end(), has); });
    if (call + 1 >= ends_at_) throw std::runtime_error("a process has ended");
    std::vector<std::string> all;
    for (const auto& texts : texts_) all.push_back(texts[call]);
    return all;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<std::string>> texts_;
  size_t ends_at_;
};

/// Runs `work(rank)` on a thread for each rank.
template <class Work>
void on_threads(int ranks, Work work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(work, rank);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tessera::test
