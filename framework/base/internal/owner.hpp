#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::detail {

/// Returns the name of this host.
std::string host_name();

/// Identifies the process that owns a temporary file or folder by its name, so that leftovers of
/// dead processes can be told from files in use, even where locks are not visible.
struct Owner {
  /// 16 hexadecimal digits: a hash of host name, boot id and pid namespace
  std::string machine;
  int64_t pid = 0;
  uint64_t start = 0;  ///< start time of the process in clock ticks, as pids are reused

  bool operator==(const Owner&) const = default;
};

/// Returns the identity of this process.
Owner this_process();

/// Returns "MACHINE-PID-START-N", unique across calls and processes, for use in names.
std::string own_number();

/// Parses the owner from a text of own_number(); nullopt for other texts.
std::optional<Owner> owner_of(std::string_view number);

/// Whether `owner` is a process of this machine that has ended; false if unknown.
bool has_ended(const Owner& owner);

/// Whether the file or folder `path` of `owner` is no longer in use: the owner has ended; or it is
/// unknown or on another machine, and nothing in `path` was written for a day.
bool is_abandoned(const std::string& path, const std::optional<Owner>& owner);

/// Returns ".tessera-NUMBER.tmp", by own_number(): for a file or folder that is renamed later.
std::string new_temporary_name();

/// A parsed name: from new_temporary_name(), or ".tessera-PID-N.tmp" of an earlier version.
struct TemporaryName {
  std::optional<Owner> owner;  ///< nullopt: a name of an earlier version
};

/// Parses the name of a temporary file or folder; nullopt for other names.
std::optional<TemporaryName> temporary_name(std::string_view name);

/// Returns the paths of all abandoned temporary files and folders in `folder`.
std::vector<std::string> abandoned_in(const std::string& folder);

/// Removes an abandoned folder. Renames it first: if its owner is alive after all, it finds no
/// folder to commit.
void remove_abandoned(const std::string& folder);

/// Whether a text consists of one or more digits.
bool is_number(std::string_view text);

}  // namespace tessera::detail
