#pragma once

#include <hdf5.h>

#include <tessera/framework/io/hdf5/messages.hpp>

namespace tessera::detail::hdf5 {

/// Makes the groups and datasets of a file, without their data, and says where those belong: of
/// {"groups": [{"path", "attributes"}], "datasets": [{"path", "dtype", "shape", "attributes"}]} the
/// list of offsets. Parents come before what lies in them.
Json lay_out(hid_t file, const Json& tree);

}  // namespace tessera::detail::hdf5
