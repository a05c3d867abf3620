#include <tessera/framework/io/format/versioned_directory.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/checksum.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/owner.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

constexpr size_t chunk_bytes = size_t{1} << 16;
constexpr uint64_t max_manifest_bytes = uint64_t{64} << 20;
constexpr size_t max_name_bytes = 100;
constexpr int64_t max_version = 999'999'999'999'999'999;

std::string checksum_of(std::string_view text) { return xxh128(std::as_bytes(std::span(text))); }

/// Returns the size and checksum of a file as in the manifest.
Json file_entry(const std::string& path) {
  Xxh128 checksum;
  InputFile file(path);
  std::vector<std::byte> chunk(chunk_bytes);
  while (const size_t got = file.read(chunk)) checksum.update(std::span(chunk).first(got));
  return {{"size", file.stored_size()}, {"xxh3", checksum.digits()}};
}

/// Returns whether a name is a plain file name, without a folder, of a file that is not
/// decompressed when read.
bool is_plain_name(const std::string& name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= max_name_bytes && name.front() != '.' &&
         !name.ends_with(".gz") && name != version_manifest &&
         std::all_of(name.begin(), name.end(), plain);
}

/// Returns the number that a folder is named after, if it is one.
std::optional<int64_t> number_of(const std::string& name) {
  int64_t number = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data(), end, number);
  const bool digits = !name.empty() && name.front() != '-' && rest == end && error == std::errc{};
  return digits && number > 0 ? std::optional(number) : std::nullopt;
}

/// Returns the names of the entries of `root`; empty if it does not exist.
std::vector<std::string> entries_of(const std::string& root) {
  std::error_code error;
  std::vector<std::string> names = names_in(root, error);
  if (error && error != std::errc::no_such_file_or_directory) {
    throw FileError(root, "the folder must be readable", error.message(),
                    "check the path and its permissions");
  }
  return names;
}

/// Returns the numbers and names of the versions in `root`, ascending.
std::vector<std::pair<int64_t, std::string>> versions_in(const std::string& root) {
  std::vector<std::pair<int64_t, std::string>> versions;
  for (const std::string& name : entries_of(root)) {
    const std::optional<int64_t> number = number_of(name);
    if (number && leads_to_folder(path_in(root, name))) versions.emplace_back(*number, name);
  }
  std::sort(versions.begin(), versions.end());
  return versions;
}

/// Returns the highest number that any entry of `root` is named after; 0 if none.
int64_t highest_number(const std::string& root) {
  int64_t highest = 0;
  for (const std::string& name : entries_of(root)) {
    highest = std::max(highest, number_of(name).value_or(0));
  }
  return highest;
}

/// Returns whether the folder of an unfinished version may have this entry.
bool is_version_file(const std::string& folder, const std::string& name) {
  return is_regular_file(path_in(folder, name)) &&
         (is_plain_name(name) || name == version_manifest || temporary_name(name));
}

/// Removes the unfinished versions of killed processes in `root`, ignoring failures.
void remove_unfinished(const std::string& root) {
  for (const std::string& entry : entries_of(root)) {
    const std::string folder = path_in(root, entry);
    const std::optional<TemporaryName> name = temporary_name(entry);
    if (!name || !is_folder(folder)) continue;
    const FileDescriptor lock = try_lock_folder(folder);
    if (!lock.valid() && errno == EWOULDBLOCK) continue;
    if (!is_abandoned(folder, name->owner)) continue;
    try {
      const std::vector<std::string> files = entries_of(folder);
      const auto is_ours = [&](const std::string& file) { return is_version_file(folder, file); };
      if (std::all_of(files.begin(), files.end(), is_ours)) remove_abandoned(folder);
    } catch (const FileError&) {
      // An unreadable folder of another user.
    }
  }
}

std::string padded(int64_t version) {
  const std::string digits = std::to_string(version);
  return std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0') + digits;
}

}  // namespace

std::vector<int64_t> list_versions(const std::string& root) {
  std::vector<int64_t> numbers;
  for (const auto& [number, name] : versions_in(root)) {
    if (numbers.empty() || numbers.back() != number) numbers.push_back(number);
  }
  return numbers;
}

std::string version_path(const std::string& root, int64_t version) {
  for (const auto& [number, name] : versions_in(root)) {
    if (number == version) return path_in(root, name);
  }
  return path_in(root, padded(version));
}

NewVersion::NewVersion(const std::string& root) : root_(root) {
  if (!make_folders(root)) fail_write(root);
  remove_unfinished(root);
  do {
    folder_ = path_in(root, new_temporary_name());
  } while (!make());
}

bool NewVersion::make() {
  if (::mkdir(folder_.c_str(), 0777) != 0) {
    if (errno == EEXIST) return false;
    fail_write(root_);
  }
  lock_ = try_lock_folder(folder_);
  // Another process may have taken it for a leftover before it was locked.
  if (lock_.valid()) return is_at(lock_, folder_);
  // Without lock support no process takes the folder for a leftover.
  return errno != EWOULDBLOCK && errno != ENOENT;
}

NewVersion::~NewVersion() {
  if (!folder_.empty()) remove_tree(folder_);
}

std::string NewVersion::file(const std::string& name) {
  if (!is_plain_name(name) || std::find(names_.begin(), names_.end(), name) != names_.end()) {
    throw ConfigError(root_, "a file of an export has a plain, unique name", in_quotes(name),
                      "rename the layer's asset");
  }
  names_.push_back(name);
  return path_in(folder_, name);
}

int64_t NewVersion::commit(Json manifest) {
  Json files = Json::object();
  std::sort(names_.begin(), names_.end());
  for (const std::string& name : names_) {
    files[name] = file_entry(path_in(folder_, name));
  }
  manifest["files"] = std::move(files);
  manifest["checksum"] = checksum_of(to_json_text(manifest, -1));
  write_file_atomically(path_in(folder_, version_manifest), to_json_text(manifest) + "\n");
  if (!sync_folder(folder_)) fail_write(folder_);
  const int64_t version = take_number();
  if (!sync_folder(root_)) fail_write(root_);
  return version;
}

int64_t NewVersion::take_number() {
  int64_t version = highest_number(root_);
  while (version < max_version) {
    ++version;
    if (rename_path(folder_, path_in(root_, padded(version)))) {
      folder_.clear();
      return version;
    }
    // Another process may have taken the number first.
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) fail_write(root_);
  }
  throw FileError(root_, "version numbers are below 10^18", str("an entry ", version),
                  "rename it, or export to another folder");
}

namespace {

void check_file(const std::string& path, const Json& expected, const JsonPath& json_path) {
  JsonObject entry(expected, json_path);
  const auto size = entry.take<uint64_t>("size");
  const auto checksum = entry.take<std::string>("xxh3");
  entry.finish();
  // The size first: it costs nothing, and says more about a truncated file.
  const Json actual = {{"size", InputFile(path).stored_size()}};
  if (actual["size"] != size) {
    throw FileError(path, str("the file has ", size, " bytes, as ", version_manifest, " says"),
                    str(actual["size"].get<uint64_t>(), " bytes"), "export the model again");
  }
  if (file_entry(path)["xxh3"] == checksum) return;
  throw FileError(path, str("the file's checksum is that in ", version_manifest),
                  "another checksum: the bytes have changed", "export the model again");
}

VersionManifest checked_version(const std::string& folder) {
  const std::string path = path_in(folder, version_manifest);
  Json manifest = parse_json(read_file(path, max_manifest_bytes), path);
  JsonObject object(manifest, JsonPath(path));
  const auto checksum = object.take<std::string>("checksum");
  const Json files = object.take<Json>("files");
  manifest.erase("checksum");
  if (checksum_of(to_json_text(manifest, -1)) != checksum) {
    throw FileError(path, "the checksum matches the other keys", in_quotes(checksum),
                    "export the model again");
  }
  if (!files.is_object()) json_fail(files, JsonPath(path).key("files"), "an object");
  VersionManifest version;
  for (const auto& [name, entry] : files.items()) {
    if (!is_plain_name(name)) {
      throw FileError(path, "the files have plain names", in_quotes(name),
                      "export the model again");
    }
    check_file(path_in(folder, name), entry, JsonPath(path).key("files." + name));
    version.files.push_back(name);
  }
  manifest.erase("files");
  version.manifest = std::move(manifest);
  return version;
}

}  // namespace

VersionManifest read_version(const std::string& folder) {
  try {
    return checked_version(folder);
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    throw FileError(error.what());
  }
}

}  // namespace tessera::detail
