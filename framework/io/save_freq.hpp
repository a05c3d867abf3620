#pragma once

#include <cstdint>
#include <optional>

namespace tessera {

/// When a callback saves: at the end of each "epoch", or every N batches.
class SaveFreq {
 public:
  /// Throws ConfigError unless "epoch".
  SaveFreq(const char* freq);  // NOLINT: reads as data
  /// Throws ConfigError unless positive.
  SaveFreq(int batches);  // NOLINT
  bool by_epoch() const { return batches_ == 0; }
  /// Returns 0 if by_epoch().
  int64_t batches() const { return batches_; }

 private:
  int64_t batches_ = 0;
};

namespace detail {

/// Returns the number of batches until the next save, `batches` after the last one; nothing if
/// saves are by epoch.
inline std::optional<int64_t> batches_to_save(const SaveFreq& freq, int64_t batches) {
  if (freq.by_epoch()) return std::nullopt;
  return freq.batches() > batches ? freq.batches() - batches : 1;
}

}  // namespace detail

/// Handling of a checkpoint that cannot be written: throw the error, or warn and go on training.
enum class SaveFailure : uint8_t { raise, warn };

}  // namespace tessera
