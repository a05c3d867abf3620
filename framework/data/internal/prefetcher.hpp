#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include <tessera/framework/data/dataset.hpp>

namespace tessera::detail {

/// Prefetches the elements of a pass on background threads and returns them in order. At most
/// `ahead` elements are made or wait to be taken.
class Prefetcher {
 public:
  /// Makes the element of a number; nothing after the last.
  using Make = std::function<std::optional<Examples>(int64_t number)>;

  /// Makes the elements from number `first` on. Each thread calls `begin`, and with its result
  /// makes elements, in inference mode.
  Prefetcher(std::function<Make()> begin, int64_t first, int64_t threads, int64_t ahead);

  /// Returns the next element, nothing after the last. Rethrows the exception thrown while this
  /// element was made, in this and every later call.
  std::optional<Examples> next();

 private:
  struct Made {
    std::optional<Examples> element;  ///< absent at the end and after an error
    std::exception_ptr error;
  };
  void work(const std::stop_token& stop);
  void make_all(const std::stop_token& stop);

  std::function<Make()> begin_;
  int64_t ahead_;
  std::mutex mutex_;  ///< guards all below
  std::condition_variable_any changed_;
  std::map<int64_t, Made> made_;  ///< finished elements that next() has not taken, by number
  int64_t next_to_make_;          ///< next number that a thread makes
  int64_t next_to_return_;        ///< next number that next() returns
  bool ended_ = false;            ///< whether the threads take no further numbers
  std::exception_ptr failure_;    ///< why a thread ended before its element was stored
  /// Declared last, so that the threads are joined before the members they use are destroyed.
  std::vector<std::jthread> threads_;
};

}  // namespace tessera::detail
