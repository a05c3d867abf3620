#pragma once

#include <string>
#include <vector>

namespace tessera::test {

/// Replaces `out` by a compressed file or an archive of texts, with a filter and a format of
/// libarchive; by nothing if libarchive cannot write it. A test opens its library by dlopen:
/// linked, its uses of libarchive would be resolved in the part of libarchive that tessera_base
/// contains.
extern "C" void pack_texts(int filter, int format, const std::vector<std::string>& texts,
                           std::string& out);

}  // namespace tessera::test
