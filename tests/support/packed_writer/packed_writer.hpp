#pragma once

#include <string>
#include <vector>

namespace tessera::test {

/// Returns a compressed file or an archive of texts, with a filter and a format of libarchive;
/// empty if libarchive cannot write it.
std::string packed(int filter, int format, const std::vector<std::string>& texts);

}  // namespace tessera::test
