#include <tessera/framework/base/internal/folder.hpp>

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include <tessera/framework/base/internal/file_descriptor.hpp>

namespace tessera::detail {
namespace {

struct Close {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

struct Free {
  void operator()(char* text) const { std::free(text); }
};

std::error_code last_error() { return {errno, std::generic_category()}; }

bool has_type(const std::string& path, mode_t type) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && (info.st_mode & S_IFMT) == type;
}

}  // namespace

std::string path_in(std::string_view folder, std::string_view name) {
  std::string path;
  path.reserve(folder.size() + 1 + name.size());
  path.append(folder);
  if (!folder.empty() && folder.back() != '/') path.push_back('/');
  path.append(name);
  return path;
}

std::string parent_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return "";
  const size_t last = path.find_last_not_of('/', slash);
  return std::string(path.substr(0, last == std::string_view::npos ? 1 : last + 1));
}

std::vector<std::string> names_in(const std::string& folder, std::error_code& error) {
  std::vector<std::string> names;
  error.clear();
  const std::unique_ptr<DIR, Close> entries(::opendir(folder.c_str()));
  if (!entries) {
    error = last_error();
    return names;
  }
  for (errno = 0; const dirent* entry = ::readdir(entries.get()); errno = 0) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) error = last_error();
  return names;
}

bool is_folder(const std::string& path) { return has_type(path, S_IFDIR); }

bool is_regular_file(const std::string& path) { return has_type(path, S_IFREG); }

bool leads_to_folder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::optional<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, Free> real(::realpath(path.c_str(), nullptr));
  return real ? std::optional<std::string>(real.get()) : std::nullopt;
}

bool make_folders(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return true;
    errno = ENOTDIR;
    return false;
  }
  const std::string parent = parent_of(path);
  if (!parent.empty() && parent != path && !make_folders(parent)) return false;
  if (::mkdir(path.c_str(), 0777) != 0) return errno == EEXIST;
  return sync_folder(parent.empty() ? "." : parent);
}

bool remove_tree(const std::string& path) {
  if (!is_folder(path)) return ::unlink(path.c_str()) == 0;
  std::error_code error;
  for (const std::string& name : names_in(path, error)) remove_tree(path_in(path, name));
  return ::rmdir(path.c_str()) == 0;
}

}  // namespace tessera::detail
