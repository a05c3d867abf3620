#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <tessera/framework/base/internal/record_file.hpp>

namespace tessera::detail {

/// How an EventFileWriter names its file and tells the time.
struct EventFileOptions {
  /// End of the file's name (Keras name: filename_suffix).
  std::string filename_suffix = ".v2";
  /// Seconds since 1970; the system's clock if empty.
  std::function<double()> clock = {};
};

/// Writes what TensorBoard shows, as TensorFlow 2's tf.summary writes it: a TFRecord file
/// `events.out.tfevents.<seconds>.<host>.<process>.<number>.v2` of protocol buffers, each record
/// with its length and masked CRC-32C. Records are kept in memory until flush(). What a full disk
/// does not take is kept too, up to 64 MiB, and written once there is space: the file ends with a
/// whole record. Keras name: tf.summary.create_file_writer.
class EventFileWriter {
 public:
  /// Creates the folder, if it is missing, and a file in it, whose first record is the version.
  /// Throws FileError naming the file, but not for a full disk.
  explicit EventFileWriter(const std::string& folder, EventFileOptions options = {});
  /// flush(), but silent.
  ~EventFileWriter();
  EventFileWriter(const EventFileWriter&) = delete;
  EventFileWriter& operator=(const EventFileWriter&) = delete;

  const std::string& path() const { return path_; }

  /// A number, kept in float32 (tf.summary.scalar).
  void scalar(const std::string& tag, double value, int64_t step);

  /// A text, which is shown as Markdown (tf.summary.text).
  void text(const std::string& tag, const std::string& text, int64_t step);

  /// How many of `values` fall into each of `buckets` intervals of one width between the least and
  /// the greatest (tf.summary.histogram). Throws ConfigError unless each is_histogram_value() and
  /// `buckets` is positive.
  void histogram(const std::string& tag, std::span<const double> values, int64_t step,
                 int buckets = 30);

  /// Whether a value is a finite number below 1e300.
  static bool is_histogram_value(double value);

  /// Hands all records to the system, for readers to see. Throws FileError naming the file; they
  /// are written with the next flush() that succeeds.
  void flush();

 private:
  /// Makes the file; false leaves errno.
  bool open();
  /// Throws FileError with errno's text.
  [[noreturn]] void fail() const;
  /// flush(), but false leaves errno.
  bool write_pending();
  void write_event(int64_t step, const std::string& summary);

  std::string path_;
  EventFileOptions options_;
  RecordFile file_;
  std::string pending_;
  bool failed_ = false;
};

/// CRC-32C (Castagnoli) of the bytes.
uint32_t crc32c(std::string_view bytes);

/// One TFRecord: length, its checksum, the bytes, their checksum.
std::string tf_record(std::string_view bytes);

}  // namespace tessera::detail
