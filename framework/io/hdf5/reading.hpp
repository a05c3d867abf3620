#pragma once

#include <hdf5.h>

namespace tessera::detail::hdf5 {

/// Tells what lies in a file: {"groups": [{"path", "attributes"}], "datasets": [{"path", "dtype",
/// "shape", "offset", "attributes"}]}, and then sends the data of each dataset whose number comes
/// in. "offset" is where its elements lie one behind the other as they do in memory, or null for
/// what only the library can read. Refuses links of every kind and data in other files.
void serve_file(hid_t file);

}  // namespace tessera::detail::hdf5
