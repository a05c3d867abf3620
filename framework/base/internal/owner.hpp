#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::detail {

/// Name of this host.
std::string host_name();

/// A process, as what it makes for a while is named after it: what a killed one left behind can be
/// told from what a living one works on, also where nobody sees its locks.
struct Owner {
  /// 16 hexadecimal digits of the host's name, of its boot and of what process ids count in.
  std::string machine;
  int64_t pid = 0;
  uint64_t start = 0;  ///< the tick at which the process began, as an id may be given again

  bool operator==(const Owner&) const = default;
};

/// This process.
Owner this_process();

/// "MACHINE-PID-START-N": a part of a name that this process has not used and no other one does.
std::string own_number();

/// The owner in a text of own_number(); absent for other texts.
std::optional<Owner> owner_of(std::string_view number);

/// Whether `owner` is a process of this machine that has ended; false where that is not certain.
bool has_ended(const Owner& owner);

/// Whether nobody works any more on the file or folder `path` that `owner` made: it has ended, or
/// it is on another machine or not known, and nothing in `path` was written for a day.
bool is_abandoned(const std::string& path, const std::optional<Owner>& owner);

/// ".tessera-NUMBER.tmp", by own_number(): a file or folder on its way to another name.
std::string new_temporary_name();

/// A name as new_temporary_name() makes it, or ".tessera-PID-N.tmp" of an earlier version.
struct TemporaryName {
  std::optional<Owner> owner;  ///< absent for an earlier version's
};

/// What the name of a file or folder tells; absent for names of other kinds.
std::optional<TemporaryName> temporary_name(std::string_view name);

/// Paths of the temporary files and folders in a folder that nobody works on any more.
std::vector<std::string> abandoned_in(const std::string& folder);

/// Whether a text is digits and nothing else.
bool is_number(std::string_view text);

}  // namespace tessera::detail
