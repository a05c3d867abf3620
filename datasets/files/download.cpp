#include <tessera/datasets/files/download.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>

#include <tessera/datasets/files/curl_library.hpp>
#include <tessera/datasets/files/resumable_file.hpp>
#include <tessera/datasets/files/sha256.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr long min_bytes_per_second = 1000;
constexpr long max_redirects = 5;
constexpr long partial_content = 206;
constexpr long range_not_satisfiable = 416;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

void check_options(const DownloadOptions& options) {
  if (!lower(options.url).starts_with("https://")) {
    throw ConfigError("download", "files are fetched over https", in_quotes(options.url),
                      "pass an address that begins with https://");
  }
  const bool digits = std::all_of(options.sha256.begin(), options.sha256.end(),
                                  [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (!digits || options.sha256.size() != 64) {
    throw ConfigError("download of " + one_line(options.url),
                      "a SHA-256 of 64 hexadecimal digits is given", in_quotes(options.sha256),
                      "pass what sha256sum says of the right file");
  }
}

/// Whether a file with this SHA-256 exists at `path`.
bool file_matches(const std::string& path, const std::string& sha256) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return false;
  const std::string sum = sha256_of(descriptor);
  ::close(descriptor);
  return sum == lower(sha256);
}

void make_folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) {
    throw FileError(folder.string(), "the folder can be made", error.message(),
                    "check its path and permissions");
  }
}

/// The progress line on a terminal.
class ProgressLine {
 public:
  ProgressLine(const DownloadOptions& options)
      : name_(std::filesystem::path(options.path).filename().string()),
        shown_(options.progress && ::isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() {
    if (written_) std::fputs("\r\033[K", stderr);
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// `total`: 0 if unknown.
  void show(double bytes, double total) {
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || (written_ && now - last_ < std::chrono::milliseconds(100))) return;
    last_ = now;
    written_ = true;
    std::fprintf(stderr, "\r\033[Kdownloading %s: %.1f", name_.c_str(), bytes / 1e6);
    if (total > 0) std::fprintf(stderr, " of %.1f", total / 1e6);
    std::fputs(" MB", stderr);
  }

 private:
  std::string name_;
  bool shown_;
  bool written_ = false;
  std::chrono::steady_clock::time_point last_;
};

/// One https request for the missing rest of a file.
class Transfer {
 public:
  Transfer(const DownloadOptions& options, ResumableFile& part)
      : options_(options),
        part_(part),
        line_(options),
        offset_(part.size()),
        library_(curl_library()),
        curl_(library_.init(), library_.cleanup) {
    if (!curl_) throw std::bad_alloc();
    set_limits();
    set_callbacks();
  }

  /// Appends the received bytes to the part. Returns early if the server has no bytes beyond it.
  void run() {
    const CURLcode result = library_.perform(curl_.get());
    if (failure_) std::rethrow_exception(failure_);
    if (result == CURLE_OK) return;
    const bool past_end = status() == range_not_satisfiable && offset_ > 0;
    if (result == CURLE_HTTP_RETURNED_ERROR && past_end) return;
    if (too_large_ || result == CURLE_FILESIZE_EXCEEDED) {
      part_.clear();
      fail(str("the file has at most ", options_.max_bytes, " bytes"), "more",
           "raise max_bytes if that is the right file");
    }
    fail("the file can be fetched", reason(result),
         "try again, or put the file at " + options_.path);
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    if (library_.set_option(curl_.get(), option, value) != CURLE_OK) {
      throw ConfigError(one_line(options_.url), "libcurl takes option " + str(option), "a refusal",
                        "use libcurl 7.85 or newer, built with https");
    }
  }

  void set_limits() {
    set(CURLOPT_URL, options_.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, "https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, max_redirects);
    set(CURLOPT_FAILONERROR, 1L);
    set(CURLOPT_NOSIGNAL, 1L);
    // Otherwise an unresponsive name server is waited for beyond the timeout.
    set(CURLOPT_QUICK_EXIT, 1L);
    set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(std::ceil(options_.connect_seconds)));
    set(CURLOPT_LOW_SPEED_LIMIT, min_bytes_per_second);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(std::ceil(options_.stall_seconds)));
    set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(options_.max_bytes));
    if (!options_.ca_file.empty()) set(CURLOPT_CAINFO, options_.ca_file.c_str());
    if (offset_ > 0) set(CURLOPT_RANGE, str(offset_, "-").c_str());
  }

  void set_callbacks() {
    set(CURLOPT_ERRORBUFFER, message_.data());
    set(CURLOPT_WRITEDATA, static_cast<void*>(this));
    set(CURLOPT_WRITEFUNCTION, &Transfer::on_data);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFODATA, static_cast<void*>(this));
    set(CURLOPT_XFERINFOFUNCTION, &Transfer::on_progress);
  }

  static size_t on_data(char* data, size_t, size_t count, void* self) {
    auto* transfer = static_cast<Transfer*>(self);
    try {
      return transfer->take(std::as_bytes(std::span(data, count))) ? count : 0;
    } catch (...) {
      // Exceptions must not pass through libcurl.
      transfer->failure_ = std::current_exception();
      return 0;
    }
  }

  static int on_progress(void* self, curl_off_t total, curl_off_t now, curl_off_t, curl_off_t) {
    auto* transfer = static_cast<Transfer*>(self);
    const auto before = static_cast<double>(transfer->offset_);
    const double all = total > 0 ? before + static_cast<double>(total) : 0;
    if (now > 0) transfer->line_.show(before + static_cast<double>(now), all);
    return 0;
  }

  bool take(std::span<const std::byte> bytes) {
    if (offset_ > 0 && status() != partial_content) {
      // The server sends the file from its beginning.
      part_.clear();
      offset_ = 0;
    }
    too_large_ = part_.size() + bytes.size() > options_.max_bytes;
    if (!too_large_) part_.append(bytes);
    return !too_large_;
  }

  long status() const {
    long code = 0;
    library_.get_info(curl_.get(), CURLINFO_RESPONSE_CODE, &code);
    return code;
  }

  std::string reason(CURLcode result) const {
    if (result == CURLE_HTTP_RETURNED_ERROR) return str("HTTP status ", status());
    const std::string text = message_[0] != '\0' ? message_.data() : library_.error_text(result);
    const std::string partial = part_.size() > 0 ? str(", with ", part_.size(), " bytes kept") : "";
    return one_line(text, 200) + partial;
  }

  [[noreturn]] void fail(const std::string& expected, const std::string& received,
                         const std::string& fix) const {
    throw FileError(one_line(options_.url, 200), expected, received, fix);
  }

  const DownloadOptions& options_;
  ResumableFile& part_;
  ProgressLine line_;
  uint64_t offset_;
  const CurlLibrary& library_;
  bool too_large_ = false;
  std::exception_ptr failure_;
  std::array<char, CURL_ERROR_SIZE> message_{};
  std::unique_ptr<CURL, decltype(&::curl_easy_cleanup)> curl_;
};

/// Completes the part, resuming an earlier transfer if its bytes fit. Throws FileError if the
/// SHA-256 is wrong.
void complete(const DownloadOptions& options, ResumableFile& part) {
  const std::string expected_sha256 = lower(options.sha256);
  if (part.size() > 0) {
    if (part.sha256() == expected_sha256) return;
    Transfer(options, part).run();
    if (part.sha256() == expected_sha256) return;
    part.clear();
  }
  Transfer(options, part).run();
  const std::string received = part.sha256();
  if (received == expected_sha256) return;
  part.clear();
  throw FileError(one_line(options.url, 200), "the file has the SHA-256 " + expected_sha256,
                  received, "try again later, or put the right file at " + options.path);
}

}  // namespace

void detail::download(const DownloadOptions& options) {
  check_options(options);
  make_folder_of(options.path);
  if (file_matches(options.path, options.sha256)) return;
  ResumableFile part(options.path + ".part");
  // Another process may have finished while this one waited.
  if (!file_matches(options.path, options.sha256)) {
    complete(options, part);
    part.rename_to(options.path);
  }
}

}  // namespace tessera
