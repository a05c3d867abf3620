#include "tests/support/fake_nccl/progress.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/fake_gpu/streams.hpp"

namespace tessera::test::fake_nccl {

namespace {

constexpr std::chrono::milliseconds delay(1);

class Progress {
 public:
  Progress() {
    std::thread([this] { run(); }).detach();
  }
  void add(c10::Stream stream, uint64_t position) {
    const std::lock_guard lock(mutex_);
    asked_.emplace_back(stream, position);
    changed_.notify_one();
  }

 private:
  using Positions = std::vector<std::pair<c10::Stream, uint64_t>>;

  void run() {
    Positions positions;
    while (true) {
      {
        std::unique_lock lock(mutex_);
        if (positions.empty()) changed_.wait(lock, [this] { return !asked_.empty(); });
      }
      std::this_thread::sleep_for(delay);
      std::erase_if(positions,
                    [](const auto& entry) { return fake_gpu::advance(entry.first, entry.second); });
      const std::lock_guard lock(mutex_);
      positions.insert(positions.end(), asked_.begin(), asked_.end());
      asked_.clear();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Positions asked_;
};

}  // namespace

void run_by_itself(c10::Stream stream, uint64_t position) {
  // Never destroyed: its thread does not end.
  static auto* const progress = new Progress;
  progress->add(stream, position);
}

}  // namespace tessera::test::fake_nccl
