#include "tests/support/keras_training.hpp"

#include <stdexcept>

#include <tessera/framework/io/format/zip_archive.hpp>
#include <tessera/framework/training/logs.hpp>

#include "tests/support/keras_core.hpp"

namespace tessera::test {

using namespace detail;

namespace {

constexpr uint64_t max_bytes = 1 << 20;

const ZipArchive& goldens() {
  static const ZipArchive archive(golden_path("keras_training.zip"));
  return archive;
}

}  // namespace

const Json& keras_training() {
  static const Json json = Json::parse(goldens().read(*goldens().find("losses.json"), max_bytes));
  return json;
}

const Json& keras_training_case(const std::string& name) {
  for (const Json& each : keras_training().at("cases")) {
    if (each.at("name") == name) return each;
  }
  throw std::runtime_error("no case " + name);
}

Examples data_of(const Json& training_case) {
  const Json& data = keras_training().at("data").at(training_case.at("data").get<std::string>());
  Examples examples;
  for (const Json& x : data.at("x")) examples.x.push_back(golden_tensor(x));
  for (const Json& y : data.at("y")) examples.y.push_back(golden_tensor(y));
  return examples;
}

std::string archive_of(const TempFolder& folder, const std::string& name) {
  const std::string path = folder / (name + ".keras");
  write_file(path, goldens().read(*goldens().find(name + ".keras"), max_bytes));
  return path;
}

double loss_of(const ModelHandle& model, const Examples& examples) {
  return *find_value(model.train_on_batch(examples), "loss");
}

std::vector<double> losses_of(const ModelHandle& model, const Examples& examples, size_t steps) {
  std::vector<double> losses;
  while (losses.size() < steps) losses.push_back(loss_of(model, examples));
  return losses;
}

}  // namespace tessera::test
