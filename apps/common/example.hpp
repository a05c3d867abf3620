#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/training/history.hpp>
#include <tessera/framework/training/options.hpp>

namespace tessera::app {

/// Name and defaults of a program in apps/examples.
struct ExampleOptions {
  std::string name;
  std::string description;
  int64_t batch_size = 32;
  int64_t epochs = 3;
};

/// The command line of an example, as arguments of compile() and fit().
struct Example {
  LayoutMap layouts;  ///< the mesh, with the rules of a layouts file
  /// Batch size and epochs. Fit holds out the last fifth of the rows, keeps the rows' order and
  /// prints a line for each epoch.
  FitOptions fit;
  bool prints = true;  ///< whether this is the process that prints
};

/// Runs an example: parses its options, sets up the mesh, calls `train` and writes the history that
/// it returns to `--history`. Returns the exit code, like run_app().
int run_example(int argc, char** argv, const ExampleOptions& options,
                const std::function<History(const Example&)>& train);

}  // namespace tessera::app
