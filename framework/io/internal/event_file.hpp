#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <tessera/framework/base/internal/record_file.hpp>

namespace tessera::detail {

/// File name and clock of an EventFileWriter.
struct EventFileOptions {
  /// Suffix of the file name (Keras name: filename_suffix).
  std::string filename_suffix = ".v2";
  /// Returns seconds since 1970 (default: the system clock).
  std::function<double()> clock = {};
};

/// Writes event files for TensorBoard as TensorFlow 2's tf.summary does (Keras name:
/// tf.summary.create_file_writer): a TFRecord file
/// `events.out.tfevents.<seconds>.<host>.<process>.<number>.v2` of protocol buffers, each record
/// with its length and masked CRC-32C. Records are buffered in memory until flush(). If the disk is
/// full, up to 64 MiB stay buffered and are written once there is space: the file always ends with
/// a complete record.
class EventFileWriter {
 public:
  /// Creates the folder if it is missing, and a file in it whose first record is the version.
  /// Throws FileError naming the file, except for a full disk.
  explicit EventFileWriter(const std::string& folder, EventFileOptions options = {});
  /// Flushes and ignores errors.
  ~EventFileWriter();
  EventFileWriter(const EventFileWriter&) = delete;
  EventFileWriter& operator=(const EventFileWriter&) = delete;

  const std::string& path() const { return path_; }

  /// Writes a number as float32 (tf.summary.scalar).
  void scalar(const std::string& tag, double value, int64_t step);

  /// Writes a text, which TensorBoard shows as Markdown (tf.summary.text).
  void text(const std::string& tag, const std::string& text, int64_t step);

  /// Writes how many of `values` fall into each of `buckets` equal intervals between the minimum
  /// and the maximum (tf.summary.histogram). Throws ConfigError unless all values satisfy
  /// is_histogram_value() and `buckets` is positive.
  void histogram(const std::string& tag, std::span<const double> values, int64_t step,
                 int buckets = 30);

  /// Returns whether a value is finite and below 1e300 in magnitude.
  static bool is_histogram_value(double value);

  /// Writes all buffered records, so that readers see them. Throws FileError naming the file; the
  /// records are written by the next flush() that succeeds.
  void flush();

  /// Returns the number of records that are not in the file: buffered ones, and those left out
  /// because more than 64 MiB would have been buffered.
  int64_t unwritten() const { return buffered_ + left_out_; }

 private:
  /// Creates the file. Returns false and leaves errno set on failure.
  bool open();
  /// Throws FileError with errno's text.
  [[noreturn]] void fail() const;
  /// Flushes. Returns false and leaves errno set on failure.
  bool write_pending();
  void write_event(int64_t step, const std::string& summary);

  std::string path_;
  EventFileOptions options_;
  RecordFile file_;
  std::string pending_;
  int64_t buffered_ = 0;  ///< records in `pending_`
  int64_t left_out_ = 0;
  bool failed_ = false;
};

/// Returns the CRC-32C (Castagnoli) of the bytes.
uint32_t crc32c(std::string_view bytes);

/// Returns a TFRecord: length, its checksum, the bytes, their checksum.
std::string tf_record(std::string_view bytes);

}  // namespace tessera::detail
