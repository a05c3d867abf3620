#include <tessera/datasets/json_lines.hpp>

#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>

namespace tessera {

using namespace detail;

std::vector<TrainingDocument> datasets::read_json_lines(const std::string& path) {
  std::vector<TrainingDocument> documents = parse_json_lines(read_file(path), path);
  if (!documents.empty()) return documents;
  throw FileError(path, "a JSON object in each line", "no document", "check the path");
}

}  // namespace tessera
