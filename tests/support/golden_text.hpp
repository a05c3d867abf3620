#pragma once

#include <string>

namespace tessera::test {

/// Returns the first line in which two texts differ; empty if none does.
std::string first_difference(const std::string& actual, const std::string& expected);

/// Compares a text with a committed one in tests/golden. TESSERA_UPDATE_GOLDEN=1 writes the file
/// instead.
std::string golden_difference(const std::string& file, const std::string& actual);

}  // namespace tessera::test
