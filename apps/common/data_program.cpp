#include "apps/common/data_program.hpp"

#include <filesystem>
#include <iostream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/model/summary.hpp>
#include <tessera/framework/training/plot_history.hpp>

#include "apps/common/processes.hpp"

namespace tessera::app {

using namespace detail;

DataProgram::DataProgram(const std::string& name, const std::string& description,
                         const std::string& data, Sample sample)
    : options_(
          name, description,
          {"data-dir", "train-size", "test-size", "plot-model", "tensorboard", "profile", "plan"}),
      sample_(std::move(sample)),
      name_(name) {
  options_.add({"data", "Data", data + "; by default synthetic data", text(data_, "PATH")});
  options_.add({"weights", "Training",
                "initial weights: .weights.h5 of Keras or Tessera, or .safetensors",
                input_file(weights_, "FILE")});
  options_.add({"dropout", "Training", "dropout rate", fraction(dropout)});
}

std::optional<Setup> DataProgram::start(int argc, char** argv) {
  if (!options_.parse(argc, argv)) return std::nullopt;
  if (data_.empty()) {
    data_ = sample_(folder_.emplace().path());
    if (is_first_process(common())) {
      std::cerr << name_ << ": trains on synthetic data; pass yours with --data" << std::endl;
    }
  } else if (!std::filesystem::exists(data_)) {
    throw ConfigError("--data", "must name a file or folder that exists", in_quotes(data_),
                      "check the path");
  }
  return set_up(common(), {{"batch", 1}});
}

int DataProgram::train(const ModelHandle& model, const DatasetHandle& training,
                       const DatasetHandle& validation) {
  const CommonOptions& o = common();
  const bool leads = is_first_process(o);
  if (!weights_.empty()) {
    model.load_weights(weights_);
    // Keras' weight files contain the learning rate too.
    if (o.learning_rate) model->optimizer()->set_learning_rate(*o.learning_rate);
  }
  if (o.summary && leads) model.summary({.show_layout = true});
  const History history = model.fit(training, {.batch_size = o.batch_size,
                                               .epochs = o.epochs,
                                               .verbose = static_cast<int>(verbosity(o)),
                                               .validation_data = validation,
                                               .shuffle = o.shuffle,
                                               .steps_per_epoch = o.steps_per_epoch});
  if (leads && !o.history.empty()) history.save(o.history);
  if (leads && !o.plot.empty()) save_plot(history, o.plot);
  return 0;
}

}  // namespace tessera::app
