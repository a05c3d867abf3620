#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

// Folders by calls of the system. std::filesystem is not used where files are written: libtorch
// contains a libstdc++ whose path frees a wild pointer if it cannot grow for want of memory.

namespace tessera::detail {

/// Returns "FOLDER/NAME".
std::string path_in(std::string_view folder, std::string_view name);

/// Returns a path without its last name: "a" of "a/b", "/" of "/b", "" of "b".
std::string parent_of(std::string_view path);

/// Returns the names of a folder's entries in no order, without "." and "..". Sets `error` if the
/// folder cannot be read; the names are then incomplete.
std::vector<std::string> names_in(const std::string& folder, std::error_code& error);

/// Whether `path` is a folder or a regular file. A symbolic link is neither.
bool is_folder(const std::string& path);
bool is_regular_file(const std::string& path);
/// Whether `path` is a folder or a symbolic link to one.
bool leads_to_folder(const std::string& path);

/// Returns an absolute path without symbolic links; nullopt with errno set on failure.
std::optional<std::string> real_path(const std::string& path);

/// Creates a folder and missing parents, which are then on disk. Returns false with errno set on
/// failure.
bool make_folders(const std::string& path);

/// Removes a file, or a folder with all it contains; symbolic links are not followed. Returns false
/// with errno set if something is left.
bool remove_tree(const std::string& path);

}  // namespace tessera::detail
