#include "tests/processes/ranks.hpp"

#include <algorithm>
#include <sstream>

namespace tessera::test {

using namespace detail;

std::vector<double> losses(const RankEnd& end) {
  std::vector<double> values;
  std::istringstream lines(end.out);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(" loss ");
    if (line.rfind("step ", 0) == 0 && at != std::string::npos) {
      values.push_back(std::stod(line.substr(at + 6)));
    }
  }
  return values;
}

size_t line_count(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

std::vector<RankEnd> run_ranks_program(int count, const std::vector<std::string>& arguments,
                                       std::chrono::milliseconds patience) {
  Processes processes(count, app_path("rank_program"), arguments);
  return processes.wait(patience);
}

}  // namespace tessera::test
