#include <tessera/framework/base/internal/owner.hpp>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/checksum.hpp>
#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/base/internal/folder.hpp>

namespace tessera::detail {
namespace {

namespace fs = std::filesystem;

constexpr size_t machine_digits = 16;
constexpr time_t day_seconds = 86400;
constexpr std::string_view temporary_prefix = ".tessera-";
constexpr std::string_view temporary_suffix = ".tmp";

/// A process as listed in /proc.
struct ProcessStat {
  char state = '?';
  uint64_t start = 0;
};

/// Reads a process from /proc; nullopt if that fails.
std::optional<ProcessStat> process_stat(int64_t pid) {
  std::string line;
  if (!std::getline(std::ifstream(str("/proc/", pid, "/stat")), line)) return std::nullopt;
  // The program's name is in brackets and may contain any character.
  const size_t name = line.rfind(')');
  if (name == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(name + 1));
  ProcessStat process;
  rest >> process.state;
  std::string skipped;
  constexpr int fields_between = 18;
  for (int i = 0; i < fields_between; ++i) rest >> skipped;
  return rest >> process.start ? std::optional(process) : std::nullopt;
}

std::string this_machine() {
  // Without a boot id every process counts as a machine of its own.
  static const std::string unknown = str(std::random_device()(), ' ', std::random_device()());
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::error_code ignored;
  const std::string ids = fs::read_symlink("/proc/self/ns/pid", ignored).string();
  const std::string text = str(host_name(), '\n', boot.empty() ? unknown : boot, '\n', ids);
  return xxh128(std::as_bytes(std::span(text))).substr(0, machine_digits);
}

template <class T>
bool take_number(std::string_view text, T& value) {
  if (!is_number(text)) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{};
}

/// Returns when the file, or the folder or anything in it, was last modified; now if unknown.
time_t last_change(const std::string& path) {
  const time_t now = std::time(nullptr);
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return now;
  time_t last = info.st_mtime;
  if (!S_ISDIR(info.st_mode)) return last;
  std::error_code error;
  for (const std::string& name : names_in(path, error)) {
    const bool known = ::lstat(path_in(path, name).c_str(), &info) == 0;
    last = std::max(last, known ? info.st_mtime : now);
  }
  return error ? now : last;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  // POSIX does not say whether a truncated name is null-terminated.
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

Owner this_process() {
  const int64_t pid = ::getpid();
  return {this_machine(), pid, process_stat(pid).value_or(ProcessStat{}).start};
}

std::string own_number() {
  static std::atomic<int> counter{0};
  const Owner self = this_process();
  return str(self.machine, '-', self.pid, '-', self.start, '-', counter++);
}

std::optional<Owner> owner_of(std::string_view number) {
  std::array<std::string_view, 4> parts;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const size_t dash = number.find('-');
    if (dash == std::string_view::npos) return std::nullopt;
    parts[i] = number.substr(0, dash);
    number.remove_prefix(dash + 1);
  }
  parts.back() = number;
  const bool machine = parts[0].size() == machine_digits &&
                       parts[0].find_first_not_of("0123456789abcdef") == std::string_view::npos;
  Owner owner{std::string(parts[0])};
  const bool valid = machine && take_number(parts[1], owner.pid) &&
                     take_number(parts[2], owner.start) && is_number(parts[3]);
  return valid ? std::optional(owner) : std::nullopt;
}

bool has_ended(const Owner& owner) {
  if (owner.machine != this_machine()) return false;
  if (::kill(static_cast<pid_t>(owner.pid), 0) != 0 && errno == ESRCH) return true;
  const std::optional<ProcessStat> process = process_stat(owner.pid);
  if (!process) return false;
  return process->start != owner.start || process->state == 'Z' || process->state == 'X';
}

bool is_abandoned(const std::string& path, const std::optional<Owner>& owner) {
  if (owner && owner->machine == this_machine()) return has_ended(*owner);
  return last_change(path) < std::time(nullptr) - day_seconds;
}

std::string new_temporary_name() { return str(temporary_prefix, own_number(), temporary_suffix); }

std::optional<TemporaryName> temporary_name(std::string_view name) {
  if (name.size() <= temporary_prefix.size() + temporary_suffix.size()) return std::nullopt;
  if (!name.starts_with(temporary_prefix) || !name.ends_with(temporary_suffix)) return std::nullopt;
  const std::string_view number = name.substr(
      temporary_prefix.size(), name.size() - temporary_prefix.size() - temporary_suffix.size());
  const size_t dash = number.find('-');
  const bool earlier = dash != std::string_view::npos && is_number(number.substr(0, dash)) &&
                       is_number(number.substr(dash + 1));
  const std::optional<Owner> owner = owner_of(number);
  return owner || earlier ? std::optional(TemporaryName{owner}) : std::nullopt;
}

std::vector<std::string> abandoned_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const std::string& entry : names_in(folder, error)) {
    const std::optional<TemporaryName> name = temporary_name(entry);
    if (!name) continue;
    std::string path = path_in(folder, entry);
    if (is_abandoned(path, name->owner)) paths.push_back(std::move(path));
  }
  return paths;
}

void remove_abandoned(const std::string& folder) {
  const std::string renamed = path_in(parent_of(folder), new_temporary_name());
  if (rename_path(folder, renamed)) remove_tree(renamed);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace tessera::detail
