#pragma once

#include <hdf5.h>

#include <string>

#include <tessera/framework/io/hdf5/handles.hpp>

namespace tessera::detail::hdf5 {

/// The element type of a dataset.
struct ElementType {
  std::string dtype;      ///< safetensors dtype, "F32"; empty: another type
  bool is_native = true;  ///< whether the file has this host's byte order and representation
};

/// Returns the element type for a dataset's HDF5 type. Keras writes bfloat16 as two opaque bytes
/// with an attribute that says so.
ElementType element_type_of(hid_t dataset, hid_t type);

/// Returns the HDF5 type of a dtype, in files and in memory. Throws Refusal for an unknown dtype.
Handle type_of(const std::string& dtype);

/// Returns the type of variable-length UTF-8 text.
Handle text_type();

}  // namespace tessera::detail::hdf5
