#pragma once

#include <hdf5.h>

#include <string>

#include <tessera/framework/io/hdf5/handles.hpp>

namespace tessera::detail::hdf5 {

/// What the elements of a dataset are.
struct Elements {
  std::string dtype;    ///< as safetensors has it, "F32"; empty: none of those
  bool as_here = true;  ///< whether they lie in the file as they do in memory here
};

/// Elements of a dataset's type. bfloat16 is two bytes of an unknown kind with an attribute that
/// says so, as Keras writes it.
Elements elements_of(hid_t dataset, hid_t type);

/// The type of a dtype in files and in memory. Throws Refusal for an unknown one.
Handle type_of(const std::string& dtype);

/// Text of variable length, UTF-8.
Handle text_type();

}  // namespace tessera::detail::hdf5
