#pragma once

#include <string>
#include <vector>

namespace tessera::test {

/// A call of this process (open, write, fsync, close, mkdir, rename, renameat2, unlink or rmdir)
/// and its path.
struct IoCall {
  std::string name;
  std::string path;
};

/// The faults to inject into calls. Calls are counted from 1 on; 0 is none.
struct IoFaults {
  int at = 0;                ///< number of the call that the fault applies to
  int error = 0;             ///< errno with which the call fails
  bool crash = false;        ///< whether the process ends before the call, with crash_exit_code
  bool short_write = false;  ///< whether a write writes only half of its bytes
  bool no_exchange = false;  ///< whether exchanging two folders fails with EINVAL
  /// Name of the machine that the process pretends to be on (default: the real one). Machines share
  /// files but, as on some network file systems, not locks: each can take any lock.
  std::string machine = "";
};

inline constexpr int crash_exit_code = 77;

/// Starts to count, record and fault calls. Only for programs that link io_faults.cpp.
void start_io_faults(const IoFaults& faults = {});

/// Ends the faults; returns the calls since start_io_faults().
std::vector<IoCall> stop_io_faults();

/// Returns the paths of the process's open files.
std::vector<std::string> open_files();

}  // namespace tessera::test
