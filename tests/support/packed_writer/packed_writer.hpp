#pragma once

#include <string>
#include <vector>

namespace tessera::test {

/// Returns a compressed file or an archive of texts, with a filter and a format of libarchive;
/// empty if libarchive cannot write it. A test opens its library by dlopen: linked, its uses of
/// libarchive would be resolved in the part of libarchive that tessera_base contains.
extern "C" std::string packed(int filter, int format, const std::vector<std::string>& texts);

}  // namespace tessera::test
