#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "apps/common/app_options.hpp"

namespace tessera::test {

/// An application with options of its own, like mnist's.
struct SampleProgram {
  SampleProgram() {
    options.common().train_size = 5000;
    options.add({"model", "Model", "model to train", app::choice(model, {"core-api", "keras"})});
    options.add({"hidden", "Model", "sizes of the hidden layers", app::integers(hidden, 1)});
    options.add({"save", "Model", "file for the weights", app::output_file(save, "FILE")});
  }

  bool parse(std::vector<std::string> arguments) {
    std::vector<const char*> argv{"mnist"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    return options.parse(static_cast<int>(argv.size()), argv.data(), out);
  }

  std::string model = "core-api";
  std::vector<int64_t> hidden{700, 500};
  std::string save;
  app::AppOptions options{"mnist", "Trains on MNIST."};
  app::CommonOptions& common = options.common();
  std::ostringstream out;
};

}  // namespace tessera::test
