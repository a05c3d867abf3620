#pragma once

#include <cstdint>
#include <optional>

namespace tessera {

/// When a callback saves: at the end of every "epoch", or after every so many batches.
class SaveFreq {
 public:
  /// Throws ConfigError for another word.
  SaveFreq(const char* word);  // NOLINT: reads as data
  /// Throws ConfigError unless positive.
  SaveFreq(int batches);  // NOLINT
  bool by_epoch() const { return batches_ == 0; }
  /// 0 where by_epoch().
  int64_t batches() const { return batches_; }

 private:
  int64_t batches_ = 0;
};

namespace detail {

/// How many batches on the next save is due, `batches` after the last; nothing where it is not
/// counted in batches.
inline std::optional<int64_t> batches_to_save(const SaveFreq& freq, int64_t batches) {
  if (freq.by_epoch()) return std::nullopt;
  return freq.batches() > batches ? freq.batches() - batches : 1;
}

/// What happens when a checkpoint cannot be written: the error is thrown, or a warning says so and
/// training goes on.
enum class SaveFailure : uint8_t { raise, warn };

}  // namespace detail

}  // namespace tessera
