#include <tessera/framework/training/step_values.hpp>

#include <set>

#include <tessera/framework/base/error.hpp>

namespace tessera {

using namespace detail;

StepValues::StepValues(const DTensor& loss) : values_{{"loss", loss}}, loss_(0) {}

StepValues::StepValues(std::initializer_list<std::pair<std::string, DTensor>> values)
    : StepValues(std::vector<std::pair<std::string, DTensor>>(values)) {}

StepValues::StepValues(std::vector<std::pair<std::string, DTensor>> values)
    : values_(std::move(values)) {
  if (values_.empty()) {
    throw ConfigError("train_step", "a step returns its loss or named values", "no values",
                      "return the loss");
  }
  std::set<std::string> names;
  for (size_t i = 0; i < values_.size(); ++i) {
    const std::string& name = values_[i].first;
    if (name == "loss") loss_ = static_cast<int64_t>(i);
    if (names.insert(name).second) continue;
    throw ConfigError("train_step", "a step's values have different names",
                      "two called \"" + name + "\"", "rename one");
  }
}

}  // namespace tessera
