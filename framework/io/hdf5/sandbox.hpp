#pragma once

#include <cstdint>

namespace tessera::detail::hdf5 {

/// Restricts this process to reading and writing open files and allocating memory: from now on it
/// cannot open files, start processes or reach the network. Limits its memory, and its CPU time by
/// what a file of `bytes` bytes needs. Any other system call kills it with SIGSYS. Returns null, or
/// a description of the restriction that the system refused.
const char* enter_sandbox(bool writes, uint64_t bytes);

}  // namespace tessera::detail::hdf5
