#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

/// Puts weights on a stage of a pipeline: those whose path, or whose layer's path, equals `match`
/// or is matched in full by it as an RE2 expression.
struct StageRule {
  std::string match = {};
  int64_t stage = 0;  ///< from 0, of all stages of all devices
  bool operator==(const StageRule&) const = default;
};

/// How a model is trained in stages: each position of a mesh dimension holds one stage or several,
/// and a batch passes through them in microbatches.
struct PipelineParallelOptions {
  /// Mesh dimension whose positions hold the stages (default: "stage").
  std::string stages = "stage";
  /// Parts of a batch that are in the pipeline at a time; 1 to 4096.
  int64_t microbatches = 1;
  /// Order of the work: "gpipe", "1f1b" (default), "interleaved", "zb_h1", "zb_v", or the name of a
  /// file that ends in ".csv", in PyTorch's format of schedules.
  std::string schedule = "1f1b";
  /// Stages of each device; 0 (default): 2 for "interleaved" and "zb_v", those of a file, otherwise
  /// 1. "interleaved" takes 1 to 64.
  int64_t chunks = 0;
  /// Division of layers into stages: "auto" (default) makes the longest stage as short as possible;
  /// "rules" follows the rules that name a stage; otherwise the layers with which the second and
  /// further stages begin.
  std::vector<std::string> split = {"auto"};
  /// Stages of single layers or weights, which every split keeps to.
  std::vector<StageRule> rules = {};
  bool operator==(const PipelineParallelOptions&) const = default;
};

namespace detail {

/// Returns the names of the schedules that are not files.
const std::vector<std::string>& pipeline_schedule_names();

/// Whether a schedule is the name of a file.
bool is_schedule_file(const std::string& schedule);

/// Returns the stages of each device; 0 for a file, which says so itself. Throws ConfigError for
/// an unknown schedule and for a number of chunks that it does not have.
int64_t schedule_chunks(const std::string& schedule, int64_t chunks);

/// Returns the options but the rules: "stage, 8 microbatches, schedule zb_v, split auto".
std::string describe(const PipelineParallelOptions& options);

/// Throws ConfigError for microbatches, a schedule, chunks or a split that cannot be; `devices` is
/// the size of the mesh dimension.
void check_pipeline_options(const PipelineParallelOptions& options, int64_t devices);

}  // namespace detail

}  // namespace tessera
