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

/// A program that trains a model on the user's data: options, path of the data, training.
class DataProgram {
 public:
  /// Writes a small dataset into a folder and returns the path that the program reads.
  using Sample = std::function<std::string(const std::string& folder)>;

  /// `data` describes the argument of `--data`, such as "a CSV file". Without that option the
  /// program trains on the data that `sample` writes, and prints a note.
  DataProgram(const std::string& name, const std::string& description, const std::string& data,
              Sample sample);

  /// Returns the options, to add the program's own and to set defaults before start().
  AppOptions& options() { return options_; }
  CommonOptions& common() { return options_.common(); }
  /// Dropout rate.
  double dropout = 0.5;

  /// Parses the arguments and sets up the mesh; returns nothing if only help was asked for. Throws
  /// what AppOptions::parse() and set_up() throw.
  std::optional<Setup> start(int argc, char** argv);

  /// Returns the path of the file or folder to read.
  const std::string& data() const { return data_; }
  /// Returns the learning rate from the options, by default `own`.
  double learning_rate(double own) { return common().learning_rate.value_or(own); }

  /// Loads weights, trains a compiled model and writes outputs as the options say. The batch size
  /// is ignored for pipelines, which are batched already. Returns the program's exit code.
  int train(const ModelHandle& model, const DatasetHandle& training,
            const DatasetHandle& validation);

 private:
  AppOptions options_;
  Sample sample_;
  std::string name_, data_, weights_;
  std::optional<TemporaryDirectory> folder_;
};

}  // namespace tessera::app
