#pragma once

#include <functional>
#include <optional>
#include <string>

#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/model/model.hpp>

#include "apps/common/app_options.hpp"
#include "apps/common/setup.hpp"
#include "apps/common/temporary_folder.hpp"

namespace tessera::app {

/// A program that trains a model on data of the user's own: its options, where the data are, and
/// the training.
class DataProgram {
 public:
  /// Writes small data into a folder and gives the path that the program reads.
  using Sample = std::function<std::string(const std::string& folder)>;

  /// `data` is what `--data` names, such as "a CSV file". Without it the program trains on what
  /// `sample` writes, and says so.
  DataProgram(const std::string& name, const std::string& description, const std::string& data,
              Sample sample);

  /// To add options of the program's own, and to set defaults of the common ones before parse().
  AppOptions& options() { return options_; }
  CommonOptions& common() { return options_.common(); }
  /// Part of the activations that training leaves out.
  double dropout = 0.5;

  /// Reads the arguments, then sets up the mesh; nothing if only help was asked for. Throws as
  /// AppOptions::parse() and set_up() do.
  std::optional<Setup> start(int argc, char** argv);

  /// The file or folder to read.
  const std::string& data() const { return data_; }
  /// The step size that was asked for, or the program's own.
  double learning_rate(double own) { return common().learning_rate.value_or(own); }

  /// Trains a compiled model as the options say, from the weights that they name, and writes what
  /// they ask for. A pipeline has batches of its own. Gives the program's exit code.
  int train(const ModelHandle& model, const DatasetHandle& training,
            const DatasetHandle& validation);

 private:
  AppOptions options_;
  Sample sample_;
  std::string name_, data_, weights_;
  std::optional<TemporaryDirectory> folder_;
};

}  // namespace tessera::app
