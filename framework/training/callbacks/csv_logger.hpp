#pragma once

#include <string>

#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// The options of CSVLogger.
struct CSVLoggerOptions {
  std::string separator = ",";  ///< one character between two values
  /// Whether to append to an existing file, without a second header line.
  bool append = false;
};

/// Writes a line of values for every epoch, in the format of Python's csv module; "NA" for a value
/// that an epoch lacks. Keras name: keras.callbacks.CSVLogger.
class CSVLogger : public CallbackHandle {
 public:
  /// Throws ConfigError unless the separator is one character. Training throws FileError if the
  /// file cannot be opened. If it cannot be written, as on a full disk, training warns once and
  /// continues; the lines are written later, at the latest at its end, where a warning names how
  /// many are lost.
  explicit CSVLogger(const std::string& filename, const CSVLoggerOptions& options = {});
};

}  // namespace tessera
