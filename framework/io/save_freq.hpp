#pragma once

#include <cstdint>

namespace tessera {

/// When a callback saves: at the end of every "epoch", or after every so many batches.
class SaveFreq {
 public:
  /// Throws ConfigError for another word.
  SaveFreq(const char* word);  // NOLINT: reads as data
  /// Throws ConfigError unless positive.
  SaveFreq(int batches);       // NOLINT
  bool by_epoch() const { return batches_ == 0; }
  /// 0 where by_epoch().
  int64_t batches() const { return batches_; }

 private:
  int64_t batches_ = 0;
};

/// What happens when a checkpoint cannot be written: the error is thrown, or a warning says so and
/// training goes on.
enum class SaveFailure : uint8_t { raise, warn };

}  // namespace tessera
