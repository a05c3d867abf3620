#pragma once

#include <hdf5.h>

#include <string>

#include <tessera/framework/io/hdf5/messages.hpp>

namespace tessera::detail::hdf5 {

/// All attributes of a group or a dataset by their names: texts, numbers and lists of either; null
/// for what is none of these.
Json attributes_of(hid_t object);

/// One of them; null if there is none.
Json attribute(hid_t object, const std::string& name);

/// Gives an object an attribute of a text, a whole number or a list of texts.
void set_attribute(hid_t object, const std::string& name, const Json& value);

}  // namespace tessera::detail::hdf5
