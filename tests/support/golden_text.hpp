#pragma once

#include <string>

namespace tessera::test {

/// The first line in which two texts differ; empty if none does.
std::string first_difference(const std::string& actual, const std::string& expected);

/// The same of a text and a committed one in tests/golden. TESSERA_UPDATE_GOLDEN=1 writes the file
/// instead.
std::string golden_difference(const std::string& file, const std::string& actual);

}  // namespace tessera::test
