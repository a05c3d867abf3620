#pragma once

#include <cstdint>

namespace tessera::detail::hdf5 {

/// From here on this process can read, write what it has open and take memory, and nothing else: it
/// opens no file, starts no process and reaches no network. Its memory is bounded, and its time by
/// what a file of so many bytes needs. A system call beyond that ends it by SIGSYS. Returns null,
/// or what the system refused.
const char* enter_sandbox(bool writes, uint64_t bytes);

}  // namespace tessera::detail::hdf5
