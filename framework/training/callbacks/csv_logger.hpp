#pragma once

#include <string>

#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// The options of CSVLogger.
struct CSVLoggerOptions {
  std::string separator = ",";  ///< the one character between two values
  /// Whether to go on in a file that exists, without a second head line.
  bool append = false;
};

/// Writes a line of values for every epoch, in the form of Python's csv module; "NA" for a value
/// that an epoch lacks. Keras name: keras.callbacks.CSVLogger.
class CSVLogger : public CallbackHandle {
 public:
  /// Throws ConfigError unless the separator is one character. Training throws FileError where the
  /// file cannot be opened; where it cannot be written, as on a full disk, it warns once and goes
  /// on, and the lines follow later.
  explicit CSVLogger(const std::string& filename, const CSVLoggerOptions& options = {});
};

}  // namespace tessera
