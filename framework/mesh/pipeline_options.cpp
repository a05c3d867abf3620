#include <tessera/framework/mesh/pipeline_options.hpp>

#include <algorithm>
#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr int64_t max_microbatches = 4096;
constexpr int64_t max_chunks = 64;

/// How many stages of each device a schedule has.
struct ChunkRange {
  int64_t usual;
  int64_t least;
  int64_t most;
};

ChunkRange chunk_range(const std::string& schedule) {
  if (schedule == "interleaved") return {2, 1, max_chunks};
  if (schedule == "zb_v") return {2, 2, 2};
  return {1, 1, 1};
}

}  // namespace

const std::vector<std::string>& detail::pipeline_schedule_names() {
  static const std::vector<std::string> names = {"gpipe", "1f1b", "interleaved", "zb_h1", "zb_v"};
  return names;
}

bool detail::is_schedule_file(const std::string& schedule) { return schedule.ends_with(".csv"); }

int64_t detail::schedule_chunks(const std::string& schedule, int64_t chunks) {
  if (is_schedule_file(schedule)) {
    if (chunks >= 0) return chunks;
    throw ConfigError("pipeline", "chunks is 0 or the number of stages of each device",
                      str(chunks, " chunks"), "leave chunks out: the file says it");
  }
  const std::vector<std::string>& names = pipeline_schedule_names();
  if (std::find(names.begin(), names.end(), schedule) == names.end()) {
    throw ConfigError("pipeline", "schedule is known, or the name of a .csv file",
                      in_quotes(schedule), suggestion(schedule, names));
  }
  const auto [usual, least, most] = chunk_range(schedule);
  if (chunks == 0) return usual;
  if (chunks >= least && chunks <= most) return chunks;
  const std::string range = least == most ? str(least) : str(least, " to ", most);
  throw ConfigError("pipeline", str("schedule \"", schedule, "\" has ", range, " chunks"),
                    str(chunks, " chunks"),
                    least == most && most == 1 && chunks > 1 && chunks <= max_chunks
                        ? "take the schedule \"interleaved\", or leave chunks out"
                        : "leave chunks out, or write such a number");
}

std::string detail::describe(const PipelineParallelOptions& options) {
  std::string text = str(options.stages, ", ", options.microbatches, " microbatches, schedule ",
                         one_line(options.schedule));
  if (options.chunks != 0) text += str(", ", options.chunks, " chunks");
  return text + ", split " + join(options.split, ", ");
}

void detail::check_pipeline_options(const PipelineParallelOptions& options, int64_t devices) {
  if (options.microbatches < 1 || options.microbatches > max_microbatches) {
    throw ConfigError("pipeline", str("microbatches is from 1 to ", max_microbatches),
                      str(options.microbatches), "write the number of parts of a batch");
  }
  const int64_t chunks = schedule_chunks(options.schedule, options.chunks);
  for (const StageRule& rule : options.rules) {
    if (rule.stage >= 0 && (chunks == 0 || rule.stage < devices * chunks)) continue;
    throw ConfigError(str("pipeline: ", one_line(rule.match)),
                      chunks == 0 ? "a stage is not negative"
                                  : str("a pipeline of ", devices * chunks,
                                        " stages has stages 0 to ", devices * chunks - 1),
                      str("stage ", rule.stage), "correct the rule");
  }
  const std::vector<std::string>& split = options.split;
  if (split == std::vector<std::string>{"auto"} || split == std::vector<std::string>{"rules"}) {
    return;
  }
  if (std::set(split.begin(), split.end()).size() != split.size()) {
    throw ConfigError("pipeline", "split names each layer once", quoted_list(split, 8),
                      "name the layer with which each stage but the first begins");
  }
  const int64_t needed = devices * chunks - 1;
  if (chunks == 0 || static_cast<int64_t>(split.size()) == needed) return;
  throw ConfigError("pipeline",
                    str("split is \"auto\", \"rules\" or the layers with which the stages but the "
                        "first begin, ",
                        needed, " for ", devices * chunks, " stages"),
                    split.empty() ? "none" : quoted_list(split, 8),
                    "name one layer for each stage but the first");
}

}  // namespace tessera
