#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/mesh/mesh.hpp>

#include "apps/common/option.hpp"

namespace tessera::app {

/// Devices that a mesh has at most.
constexpr int64_t max_devices = 4096;

/// The options every application has; an application sets its own defaults before parsing.
struct CommonOptions {
  std::string device = "auto";
  /// Devices of this process; absent: its share of the mesh.
  std::optional<int64_t> devices;
  /// Devices of the mesh on each GPU; absent: 1, or as many as a mesh needs that was not asked for.
  std::optional<int64_t> virtual_devices;
  /// Of all processes. Empty: the layouts file's mesh, else the application's.
  MeshDims mesh;
  std::string layouts;
  std::string config;
  std::string dtype = "float32";
  std::string matmul_precision = "highest";
  int64_t seed = 1337;
  std::string data_dir;
  /// Absent: all there are.
  std::optional<int64_t> train_size;
  std::optional<int64_t> test_size;
  int64_t batch_size = 128;
  int64_t epochs = 3;
  /// Absent: until the data end.
  std::optional<int64_t> steps_per_epoch;
  /// Absent: the model's own.
  std::optional<double> learning_rate;
  bool shuffle = true;
  std::string history;
  std::string plot;
  std::string plot_model;
  std::string tensorboard;
  std::string profile;
  bool summary = false;
  bool plan = false;
  int64_t verbose = 1;
  /// Where rank 0 listens, its rank and the number of processes; absent: the environment tells.
  std::string coordinator;
  std::optional<int64_t> rank;
  std::optional<int64_t> processes;
  /// Whether it may listen beyond this host without a secret.
  bool insecure = false;
  /// Seconds until a process that others wait for is given up, and until all have to be there.
  int64_t timeout = 120;
  int64_t connect_timeout = 300;
  bool check_collectives = false;
  bool shared_memory = true;
};

/// Command line and configuration file of an application: the common options and those it adds.
///
/// The command line beats `--config FILE.json`, which beats the defaults. The file is one JSON
/// object whose keys are the options' names with '_' for '-'.
class AppOptions {
 public:
  /// `left_out`: common options that have no meaning there.
  AppOptions(const std::string& name, const std::string& description,
             const std::vector<std::string>& left_out = {});
  /// Without the common options: those it adds, `--config` and `--help`.
  static AppOptions bare(const std::string& name, const std::string& description);
  ~AppOptions();
  AppOptions(const AppOptions&) = delete;
  AppOptions& operator=(const AppOptions&) = delete;

  /// The defaults before parse(), the values after.
  CommonOptions& common();

  /// Adds an option of the application's own; its variable's value at parse() is the default.
  void add(Option option);

  /// Adds an argument without a flag, "DIR"; they are read in order, and each must be there.
  void add_argument(const std::string& name, const std::string& help, std::string& value);

  /// Adds the arguments that follow these, "TEXT...": any number, after "--" whatever they begin
  /// with.
  void add_arguments(const std::string& name, const std::string& help,
                     std::vector<std::string>& values);

  /// Reads the arguments and the file they may name. Returns false if only help was asked for,
  /// which it writes to `out`. Throws ConfigError or FileError for anything wrong.
  bool parse(int argc, const char* const* argv, std::ostream& out);
  /// parse() with help on the standard output.
  bool parse(int argc, const char* const* argv);

 private:
  struct Impl;
  explicit AppOptions(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::app
