#pragma once

#include <hdf5.h>

#include <tessera/framework/io/hdf5/messages.hpp>

namespace tessera::detail::hdf5 {

/// Creates the groups and datasets of {"groups": [{"path", "attributes"}], "datasets": [{"path",
/// "dtype", "shape", "attributes"}]} in a file, without their data. Returns the list of the data's
/// offsets. Parents come before their children.
Json lay_out(hid_t file, const Json& tree);

}  // namespace tessera::detail::hdf5
