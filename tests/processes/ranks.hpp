#pragma once

#include <string>
#include <vector>

#include "tests/support/processes.hpp"

namespace tessera::test {

/// The loss of each step that rank_program printed.
std::vector<double> losses(const RankEnd& end);

/// The number of lines of a text.
size_t line_count(const std::string& text);

/// Runs rank_program on `count` processes to its end.
std::vector<RankEnd> run_ranks_program(
    int count, const std::vector<std::string>& arguments,
    std::chrono::milliseconds patience = std::chrono::minutes(2));

}  // namespace tessera::test
