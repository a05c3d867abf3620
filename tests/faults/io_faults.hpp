#pragma once

#include <string>
#include <vector>

namespace tessera::test {

/// A call that the process made: open, write, fsync, close, mkdir, rename, renameat2, unlink or
/// rmdir, and the path it was about.
struct IoCall {
  std::string name;
  std::string path;
};

/// What goes wrong with the calls of IoCall. They are counted from 1 on; 0 is none of them.
struct IoFaults {
  int at = 0;                ///< the call that something happens to
  int error = 0;             ///< it fails with this errno
  bool crash = false;        ///< the process ends before it, with crash_exit_code
  bool short_write = false;  ///< if it is a write, it writes half of the bytes
  bool no_exchange = false;  ///< the file system cannot exchange two folders: EINVAL
  /// The process is on a machine of this name, which with those of other names sees the same
  /// files but, as on network file systems, not their locks: each takes any lock. Empty: it is not.
  std::string machine = "";
};

inline constexpr int crash_exit_code = 77;

/// From here on calls are counted, recorded and spoilt. Programs that link io_faults.cpp only.
void start_io_faults(const IoFaults& faults = {});

/// Back to normal; returns the calls since.
std::vector<IoCall> stop_io_faults();

/// Paths of the files that the process has open.
std::vector<std::string> open_files();

}  // namespace tessera::test
