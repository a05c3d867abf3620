#include "apps/common/example.hpp"

#include <cstdio>

#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/training/callbacks/lambda_callback.hpp>
#include <tessera/framework/training/plot_history.hpp>

#include "apps/common/app_options.hpp"
#include "apps/common/processes.hpp"
#include "apps/common/run_app.hpp"
#include "apps/common/setup.hpp"

namespace tessera::app {

namespace {

/// Prints "epoch 1: loss 0.6931472, val_loss 0.6923018".
void print_epoch(int64_t epoch, const Logs& logs) {
  std::printf("epoch %lld:", static_cast<long long>(epoch + 1));
  const char* separator = " ";
  for (const auto& [name, value] : logs) {
    std::printf("%s%s %.7g", separator, name.c_str(), value);
    separator = ", ";
  }
  std::printf("\n");
  std::fflush(stdout);
}

/// Returns the options of a fit that prints a line after each epoch.
FitOptions printing_fit(const CommonOptions& common) {
  FitOptions fit = fit_options(common);
  fit.validation_split = 0.2;
  const bool prints = is_first_process(common);
  fit.callbacks = {LambdaCallback({.on_epoch_end = [prints](int64_t epoch, const Logs& logs) {
    if (prints) print_epoch(epoch, logs);
  }})};
  return fit;
}

}  // namespace

int run_example(int argc, char** argv, const ExampleOptions& options,
                const std::function<History(const Example&)>& train) {
  return run_app(argc, argv, [&](int count, char** arguments) {
    AppOptions parser(options.name, options.description,
                      {"data-dir", "train-size", "test-size", "learning-rate", "plot-model",
                       "tensorboard", "profile", "summary", "plan"});
    CommonOptions& common = parser.common();
    common.batch_size = options.batch_size;
    common.epochs = options.epochs;
    common.shuffle = false;
    common.verbose = 0;
    if (!parser.parse(count, arguments)) return 0;
    const Setup setup = set_up(common, {{"batch", 1}});
    const DefaultMeshScope scope(setup.layouts.mesh());
    const bool prints = is_first_process(common);
    const History history =
        train({.layouts = setup.layouts, .fit = printing_fit(common), .prints = prints});
    if (prints && !common.history.empty()) history.save(common.history);
    if (prints && !common.plot.empty()) save_plot(history, common.plot);
    return 0;
  });
}

}  // namespace tessera::app
