#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include <tessera/datasets/pipeline/internal/pipeline_stage.hpp>

namespace tessera::detail {

/// The elements of a pass in their order, made on threads before they are asked for, of which there
/// are at most `ahead` that nobody has taken; without threads, made when they are asked for.
class ElementsAhead {
 public:
  ElementsAhead(std::shared_ptr<const PipelineElements> elements, int64_t first, int64_t threads,
                int64_t ahead);

  /// The next element; nothing behind the last. Rethrows what the making of this one threw, now and
  /// from then on.
  std::optional<Examples> next();

 private:
  struct Made {
    std::optional<Examples> element;  ///< absent: there is no more, or an error
    std::exception_ptr error;
  };
  Made make(int64_t number) const;
  void work(const std::stop_token& stop);

  std::shared_ptr<const PipelineElements> elements_;
  int64_t ahead_;
  std::mutex mutex_;  ///< for all below
  std::condition_variable_any changed_;
  std::map<int64_t, Made> made_;  ///< that nobody has taken
  int64_t to_make_, to_give_;     ///< the number that a thread takes next, and that next() gives
  bool ended_ = false;            ///< nothing behind what is being made is wanted
  /// Last, so that they are joined before what they use goes.
  std::vector<std::jthread> threads_;
};

}  // namespace tessera::detail
