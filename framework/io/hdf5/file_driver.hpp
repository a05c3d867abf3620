#pragma once

#include <hdf5.h>

#include <cstdint>

namespace tessera::detail::hdf5 {

/// The part of an open file that the library takes for the whole: an HDF5 file may lie inside a zip
/// archive, `base` bytes behind its beginning. Opens no file itself.
struct FilePart {
  int descriptor = -1;
  uint64_t base = 0;
  uint64_t size = 0;  ///< bytes that are there; grows with what is written
};

/// A property list for H5Fopen and H5Fcreate with any name, of which there may be one open at a
/// time: a virtual file driver that reads and writes `part`, which must outlive it.
hid_t access_to(FilePart& part);

}  // namespace tessera::detail::hdf5
