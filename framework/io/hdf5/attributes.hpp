#pragma once

#include <hdf5.h>

#include <string>

#include <tessera/framework/io/hdf5/messages.hpp>

namespace tessera::detail::hdf5 {

/// Returns all attributes of a group or dataset by name: texts, numbers and lists of either; null
/// for other types.
Json attributes_of(hid_t object);

/// Returns one attribute; null if there is none.
Json attribute(hid_t object, const std::string& name);

/// Sets an attribute of an object: a text, an integer or a list of texts.
void set_attribute(hid_t object, const std::string& name, const Json& value);

}  // namespace tessera::detail::hdf5
