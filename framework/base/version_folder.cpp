#include <tessera/framework/base/version_folder.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/file.hpp>
#include <tessera/framework/base/text.hpp>

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr size_t chunk_bytes = size_t{1} << 16;
constexpr uint64_t max_manifest_bytes = uint64_t{64} << 20;
constexpr size_t max_name_bytes = 100;

[[noreturn]] void fail_write(const std::string& path, const std::string& reason) {
  throw FileError(path, "the folder must be writable", reason,
                  "check the folder, its permissions and the free space");
}

std::string hexadecimal(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : canonical.digest) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string checksum_of(std::string_view text) {
  return hexadecimal(XXH3_128bits(text.data(), text.size()));
}

/// Size and checksum of a file as the manifest has them.
Json file_entry(const std::string& path) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                      &XXH3_freeState);
  if (!state) throw std::bad_alloc();
  XXH3_128bits_reset(state.get());
  InputFile file(path);
  std::vector<std::byte> chunk(chunk_bytes);
  while (const size_t got = file.read(chunk)) {
    XXH3_128bits_update(state.get(), chunk.data(), got);
  }
  return {{"size", file.stored_size()}, {"xxh3", hexadecimal(XXH3_128bits_digest(state.get()))}};
}

/// Whether a name is that of a file in its own folder, which is read as it is stored.
bool is_plain_name(const std::string& name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= max_name_bytes && name.front() != '.' &&
         !name.ends_with(".gz") && name != version_manifest &&
         std::all_of(name.begin(), name.end(), plain);
}

/// The number in a folder's name, if it is one.
std::optional<int64_t> number_of(const std::string& name) {
  int64_t number = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data(), end, number);
  const bool digits = !name.empty() && name.front() != '-' && rest == end && error == std::errc{};
  return digits && number > 0 ? std::optional(number) : std::nullopt;
}

void sync_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // Some file systems have no fsync for folders; there is nothing more to do on them.
  const bool good = descriptor >= 0 && (::fsync(descriptor) == 0 || errno == EINVAL);
  const std::string reason = std::strerror(errno);
  if (descriptor >= 0) ::close(descriptor);
  if (!good) fail_write(folder, reason);
}

/// Names and numbers of the versions in `root`, ascending.
std::vector<std::pair<int64_t, std::string>> versions_in(const std::string& root) {
  std::vector<std::pair<int64_t, std::string>> versions;
  if (!exists(root)) return versions;
  std::error_code error;
  fs::directory_iterator entries(root, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    std::error_code ignored;
    const std::optional<int64_t> number = number_of(name);
    if (number && entries->is_directory(ignored)) versions.emplace_back(*number, name);
  }
  if (error) {
    throw FileError(root, "the folder must be readable", error.message(),
                    "check the path and its permissions");
  }
  std::sort(versions.begin(), versions.end());
  return versions;
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
    if (number == version) return (fs::path(root) / name).string();
  }
  return (fs::path(root) / padded(version)).string();
}

NewVersion::NewVersion(const std::string& root) : root_(root) {
  std::error_code error;
  fs::create_directories(root, error);
  if (error) fail_write(root, error.message());
  static std::atomic<int> counter{0};
  int made = 0;
  do {
    folder_ = (fs::path(root) / str(".tessera-", ::getpid(), "-", counter++, ".tmp")).string();
    made = ::mkdir(folder_.c_str(), 0777);
  } while (made != 0 && errno == EEXIST);
  if (made != 0) fail_write(root, std::strerror(errno));
}

NewVersion::~NewVersion() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

std::string NewVersion::file(const std::string& name) {
  if (!is_plain_name(name) || std::find(names_.begin(), names_.end(), name) != names_.end()) {
    throw ConfigError(root_, "a file of an export has a plain name of its own", in_quotes(name),
                      "rename the layer's asset");
  }
  names_.push_back(name);
  return (fs::path(folder_) / name).string();
}

int64_t NewVersion::commit(Json manifest) {
  Json files = Json::object();
  std::sort(names_.begin(), names_.end());
  for (const std::string& name : names_) {
    files[name] = file_entry((fs::path(folder_) / name).string());
  }
  manifest["files"] = std::move(files);
  manifest["checksum"] = checksum_of(to_json_text(manifest, -1));
  write_file_atomically((fs::path(folder_) / version_manifest).string(),
                        to_json_text(manifest) + "\n");
  sync_folder(folder_);
  const std::vector<int64_t> versions = list_versions(root_);
  int64_t version = versions.empty() ? 1 : versions.back() + 1;
  // Another process may take the number first.
  while (::rename(folder_.c_str(), version_path(root_, version).c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST) fail_write(root_, std::strerror(errno));
    ++version;
  }
  folder_.clear();
  sync_folder(root_);
  return version;
}

namespace {

void check_file(const std::string& path, const Json& expected, const JsonPath& place) {
  JsonObject entry(expected, place);
  const auto size = entry.take<uint64_t>("size");
  const auto checksum = entry.take<std::string>("xxh3");
  entry.finish();
  // The size first: it costs nothing, and says more about a file that was cut short.
  const Json found = {{"size", InputFile(path).stored_size()}};
  if (found["size"] != size) {
    throw FileError(path, str("the file has ", size, " bytes, as ", version_manifest, " says"),
                    str(found["size"].get<uint64_t>(), " bytes"), "export the model again");
  }
  if (file_entry(path)["xxh3"] == checksum) return;
  throw FileError(path, str("the file's checksum is that of ", version_manifest),
                  "another, so the bytes have changed", "export the model again");
}

VersionManifest checked_version(const std::string& folder) {
  const std::string path = (fs::path(folder) / version_manifest).string();
  Json manifest = parse_json(read_file(path, max_manifest_bytes), path);
  JsonObject object(manifest, JsonPath(path));
  const auto checksum = object.take<std::string>("checksum");
  const Json files = object.take<Json>("files");
  manifest.erase("checksum");
  if (checksum_of(to_json_text(manifest, -1)) != checksum) {
    throw FileError(path, "the checksum is that of the other keys", in_quotes(checksum),
                    "export the model again");
  }
  if (!files.is_object()) json_fail(files, JsonPath(path).key("files"), "an object");
  VersionManifest version;
  for (const auto& [name, entry] : files.items()) {
    if (!is_plain_name(name)) {
      throw FileError(path, "the files have plain names", in_quotes(name),
                      "export the model again");
    }
    check_file((fs::path(folder) / name).string(), entry, JsonPath(path).key("files." + name));
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

}  // namespace tessera
