#pragma once

#include <hdf5.h>

namespace tessera::detail::hdf5 {

/// Sends the listing of a file: {"groups": [{"path", "attributes"}], "datasets": [{"path", "dtype",
/// "shape", "offset", "attributes"}]}, and then the data of each dataset whose index is requested.
/// "offset" is where the elements are contiguous in their memory representation, or null if only
/// the library can read them. Refuses links of any kind and data in other files.
void serve_file(hid_t file);

}  // namespace tessera::detail::hdf5
