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

/// Maximum number of devices of a mesh.
constexpr int64_t max_devices = 4096;

/// The options of all applications; an application sets its own defaults before parsing.
struct CommonOptions {
  std::string device = "auto";
  /// Devices of this process (default: its share of the mesh).
  std::optional<int64_t> devices;
  /// Mesh devices on each GPU (default: 1, or as many as the application's own mesh needs if no
  /// mesh was requested).
  std::optional<int64_t> virtual_devices;
  /// Mesh over all processes (default: the layouts file's, or the application's).
  MeshDims mesh;
  std::string layouts;
  std::string config;
  std::string dtype = "float32";
  std::string matmul_precision = "highest";
  int64_t seed = 1337;
  std::string data_dir;
  /// Number of training and test examples (default: all).
  std::optional<int64_t> train_size;
  std::optional<int64_t> test_size;
  int64_t batch_size = 128;
  int64_t epochs = 3;
  /// FitOptions::memory_limit and FitOptions::peak_flops (default: none).
  std::optional<double> memory_limit;
  std::optional<double> peak_flops;
  /// Steps per epoch (default: until the data end).
  std::optional<int64_t> steps_per_epoch;
  /// Learning rate (default: the model's own).
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
  /// Address where rank 0 listens, rank and number of processes (default: from the environment).
  std::string coordinator;
  std::optional<int64_t> rank;
  std::optional<int64_t> processes;
  /// Whether this process may listen beyond this host without a secret.
  bool insecure = false;
  /// Whether the processes of the run encrypt what they send each other.
  bool encrypt = false;
  /// Seconds to wait for another process, and for all processes to connect.
  int64_t timeout = 120;
  int64_t connect_timeout = 300;
  bool check_collectives = false;
  bool world_size_invariant = false;
  /// ElasticOptions::snapshot_every.
  int64_t elastic_snapshot_every = 10;
  bool shared_memory = true;
};

/// Parses command line and configuration file of an application: the common options and its own.
///
/// The command line overrides `--config FILE.json`, which overrides the defaults. The file is a
/// JSON object whose keys are the options' names with '_' for '-'.
class AppOptions {
 public:
  /// `left_out` are common options that the application does not support.
  AppOptions(const std::string& name, const std::string& description,
             const std::vector<std::string>& left_out = {});
  /// Makes options without the common ones: only added ones, `--config`, `--help` and `--version`.
  static AppOptions bare(const std::string& name, const std::string& description);
  ~AppOptions();
  AppOptions(const AppOptions&) = delete;
  AppOptions& operator=(const AppOptions&) = delete;

  /// Returns the common options: defaults before parse(), values after it.
  CommonOptions& common();

  /// Adds an application's own option; its variable's value at parse() is the default.
  void add(Option option);

  /// Adds a required positional argument, such as "DIR". Arguments are read in the order added.
  void add_argument(const std::string& name, const std::string& help, std::string& value);

  /// Adds any number of positional arguments after those, "TEXT...". After "--" they may begin with
  /// a dash.
  void add_arguments(const std::string& name, const std::string& help,
                     std::vector<std::string>& values);

  /// Parses the arguments and the configuration file that they name. If they ask for help or
  /// the version, writes it to `out` and returns false. Throws ConfigError, FileError.
  bool parse(int argc, const char* const* argv, std::ostream& out);
  /// Like parse() above; help and version go to standard output.
  bool parse(int argc, const char* const* argv);

 private:
  struct Impl;
  explicit AppOptions(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::app
