#pragma once

#include <hdf5.h>

#include <cstdint>

namespace tessera::detail::hdf5 {

/// The part of an open file that is the HDF5 file: it may be inside a zip archive, at offset
/// `base`. Opens no file itself.
struct FilePart {
  int descriptor = -1;
  uint64_t base = 0;
  uint64_t size = 0;  ///< current size; grows as data are written
};

/// Returns an access property list for H5Fopen and H5Fcreate with any file name, with a virtual
/// file driver that reads and writes `part`, which must outlive it. Only one file may be open at a
/// time.
hid_t access_property_list(FilePart& part);

}  // namespace tessera::detail::hdf5
