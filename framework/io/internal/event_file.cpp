#include <tessera/framework/io/internal/event_file.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/owner.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

// Field numbers of tensorflow/core/util/event.proto and framework/{summary,tensor}.proto.
enum Event : uint32_t {
  wall_time = 1,
  event_step = 2,
  file_version = 3,
  summary_field = 5,
  source_metadata = 10
};
enum Value : uint32_t { value_tag = 1, value_tensor = 8, value_metadata = 9 };
enum Tensor : uint32_t { dtype = 1, tensor_shape = 2, tensor_content = 4, string_value = 8 };
enum DataType : int32_t { dt_float = 1, dt_double = 2, dt_string = 7 };

// Records are buffered up to this size.
constexpr size_t buffer_bytes = size_t{1} << 20;
// Records are buffered up to this size while the disk is full.
constexpr size_t max_pending_bytes = size_t{64} << 20;

constexpr std::array<uint32_t, 256> crc_table = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit) {
      table[i] = (table[i] >> 1) ^ (table[i] & 1 ? 0x82F63B78u : 0);
    }
  }
  return table;
}();

/// Returns the checksum as TFRecord stores it: masked, so that a record within a record does not
/// look valid.
uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

template <class T>
std::string little_endian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

std::string little_endian(double value) { return little_endian(std::bit_cast<uint64_t>(value)); }

double system_seconds() {
  using namespace std::chrono;
  return duration<double>(system_clock::now().time_since_epoch()).count();
}

/// Returns a Summary with one value for a TensorBoard plug-in.
std::string summary_of(const std::string& tag, const std::string& tensor, const char* plugin) {
  std::string plugin_data, metadata, value, summary;
  protozero::pbf_writer(plugin_data).add_string(1, plugin);
  protozero::pbf_writer(metadata).add_message(1, plugin_data);
  protozero::pbf_writer writer(value);
  writer.add_string(value_tag, tag);
  writer.add_message(value_tensor, tensor);
  writer.add_message(value_metadata, metadata);
  protozero::pbf_writer(summary).add_message(1, value);
  return summary;
}

/// Returns a TensorShape with these extents.
std::string tensor_shape_of(std::initializer_list<int64_t> extents) {
  std::string shape;
  for (const int64_t extent : extents) {
    std::string dim;
    protozero::pbf_writer(dim).add_int64(1, extent);
    protozero::pbf_writer(shape).add_message(2, dim);
  }
  return shape;
}

/// Returns a TensorProto with its elements in `field`.
std::string tensor_of(DataType type, const std::string& shape, uint32_t field,
                      const std::string& bytes) {
  std::string tensor;
  protozero::pbf_writer writer(tensor);
  writer.add_enum(dtype, type);
  writer.add_message(tensor_shape, shape);
  writer.add_bytes(field, bytes);
  return tensor;
}

/// Returns a row (left edge, right edge, count) for each bucket. If all values are equal they are
/// in the last one.
std::string bucket_rows(std::span<const double> values, int buckets) {
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  const double lo = values.empty() ? 0 : *least, hi = values.empty() ? 0 : *greatest;
  const double width = (hi - lo) / buckets;
  std::vector<double> counts(static_cast<size_t>(buckets));
  for (const double value : values) {
    const double bucket = width > 0 ? std::floor((value - lo) / width) : buckets - 1;
    counts[static_cast<size_t>(std::min<double>(bucket, buckets - 1))] += 1;
  }
  const auto edge = [&](int i) { return i == buckets ? hi : lo + i * width; };
  std::string rows;
  for (int i = 0; i < buckets; ++i) {
    rows += little_endian(edge(i)) + little_endian(edge(i + 1)) +
            little_endian(counts[static_cast<size_t>(i)]);
  }
  return rows;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc = (crc >> 8) ^ crc_table[(crc ^ static_cast<uint8_t>(byte)) & 0xFF];
  }
  return ~crc;
}

std::string tf_record(std::string_view bytes) {
  const std::string length = little_endian(uint64_t{bytes.size()});
  return length + little_endian(masked_crc(length)) + std::string(bytes) +
         little_endian(masked_crc(bytes));
}

EventFileWriter::EventFileWriter(const std::string& folder, EventFileOptions options)
    : options_(std::move(options)) {
  static std::atomic<int> counter{0};
  if (!options_.clock) options_.clock = system_seconds;
  const double now = options_.clock();
  path_ = path_in(folder, str("events.out.tfevents.", static_cast<int64_t>(now), '.', host_name(),
                              '.', ::getpid(), '.', counter++, options_.filename_suffix));
  // A full disk may have space later.
  if (!open() && errno != ENOSPC && errno != EDQUOT) fail();
  std::string source, event;
  protozero::pbf_writer(source).add_string(1, "tensorflow.core.util.events_writer");
  protozero::pbf_writer writer(event);
  writer.add_double(wall_time, now);
  writer.add_string(file_version, "brain.Event:2");
  writer.add_message(source_metadata, source);
  pending_ = tf_record(event);
  write_pending();
}

EventFileWriter::~EventFileWriter() { write_pending(); }

bool EventFileWriter::open() {
  const std::string folder = parent_of(path_);
  return (folder.empty() || make_folders(folder)) && file_.open(path_, true);
}

void EventFileWriter::fail() const {
  throw FileError(path_, "the folder must be writable", std::strerror(errno),
                  "check the folder, its permissions and the free space");
}

bool EventFileWriter::is_histogram_value(double value) { return std::abs(value) < 1e300; }

void EventFileWriter::scalar(const std::string& tag, double value, int64_t step) {
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  const std::string tensor = tensor_of(dt_float, "", tensor_content, little_endian(bits));
  write_event(step, summary_of(tag, tensor, "scalars"));
}

void EventFileWriter::text(const std::string& tag, const std::string& text, int64_t step) {
  write_event(step, summary_of(tag, tensor_of(dt_string, "", string_value, text), "text"));
}

void EventFileWriter::histogram(const std::string& tag, std::span<const double> values,
                                int64_t step, int buckets) {
  // The difference of two values must be finite too.
  const auto bad = std::find_if_not(values.begin(), values.end(), is_histogram_value);
  if (bad != values.end()) {
    throw ConfigError("histogram " + in_quotes(tag),
                      "the values must be finite numbers below 1e300", str(*bad),
                      "leave out values that are not");
  }
  if (buckets < 1) {
    throw ConfigError("histogram " + in_quotes(tag), "there must be at least one bucket",
                      std::to_string(buckets), "pass a positive number of buckets");
  }
  const std::string tensor = tensor_of(dt_double, tensor_shape_of({buckets, 3}), tensor_content,
                                       bucket_rows(values, buckets));
  write_event(step, summary_of(tag, tensor, "histograms"));
}

void EventFileWriter::write_event(int64_t step, const std::string& summary) {
  std::string event;
  protozero::pbf_writer writer(event);
  writer.add_double(wall_time, options_.clock());
  // Step 0 is left out, like every default value in protocol buffers.
  if (step != 0) writer.add_int64(event_step, step);
  writer.add_message(summary_field, summary);
  const std::string record = tf_record(event);
  const bool fits = pending_.size() + record.size() <= max_pending_bytes;
  if (fits) pending_ += record;
  ++(fits ? buffered_ : left_out_);
  // If it fails, flush() tries again and throws.
  if (pending_.size() > buffer_bytes && !failed_) write_pending();
}

bool EventFileWriter::write_pending() {
  failed_ = !(file_.is_open() || open()) || !file_.append(pending_);
  if (failed_) return false;
  pending_.clear();
  buffered_ = 0;
  return true;
}

void EventFileWriter::flush() {
  if (!write_pending()) fail();
}

}  // namespace tessera::detail
