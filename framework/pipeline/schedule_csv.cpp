#include <tessera/framework/pipeline/schedule_csv.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/pipeline/check_schedule.hpp>

namespace tessera::detail {
namespace {

constexpr std::array all_kinds = {ActionKind::forward,         ActionKind::input_gradient,
                                  ActionKind::weight_gradient, ActionKind::backward,
                                  ActionKind::send_forward,    ActionKind::recv_forward,
                                  ActionKind::send_backward,   ActionKind::recv_backward};

/// Actions of PyTorch for weights that are gathered for a while.
constexpr std::array<std::string_view, 3> gathering = {"UNSHARD", "RESHARD", "REDUCE_GRAD"};

constexpr uint64_t max_file_bytes = uint64_t{1} << 26;

constexpr const char* action_form =
    "an action is a stage, F, I, W, B, SEND_F, RECV_F, SEND_B or RECV_B, and a microbatch, such as "
    "0F0";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Parses one line into actions.
class LineParser {
 public:
  LineParser(std::string_view line, const std::string& source, size_t number)
      : line_(line), source_(source), number_(number) {}

  std::vector<PipelineAction> parse() {
    std::vector<PipelineAction> actions;
    while (true) {
      skip_blanks();
      entry_ = at_;
      if (at_ < line_.size() && line_[at_] != ',') actions.push_back(parse_action());
      skip_blanks();
      if (at_ == line_.size()) return actions;
      if (line_[at_] != ',') fail(action_form);
      ++at_;
    }
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    const std::string_view entry = line_.substr(entry_, line_.find(',', entry_) - entry_);
    throw ConfigError(str(source_, ":", number_, ":", entry_ + 1), expected, in_quotes(entry, 30),
                      "write such an action, or a blank entry");
  }

  void skip_blanks() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t')) ++at_;
  }

  PipelineAction parse_action() {
    const int64_t stage = parse_number();
    const size_t begin = at_;
    while (at_ < line_.size() && ((line_[at_] >= 'A' && line_[at_] <= 'Z') || line_[at_] == '_')) {
      ++at_;
    }
    const std::string_view letters = line_.substr(begin, at_ - begin);
    if (std::find(gathering.begin(), gathering.end(), letters) != gathering.end()) {
      fail("a schedule computes, sends and receives; layouts gather weights and reduce gradients");
    }
    for (const ActionKind kind : all_kinds) {
      if (letters == to_string(kind)) return {stage, kind, parse_number()};
    }
    fail(action_form);
  }

  int64_t parse_number() {
    const size_t begin = at_;
    int64_t number = 0;
    while (at_ < line_.size() && is_digit(line_[at_])) {
      number = number * 10 + (line_[at_++] - '0');
      if (at_ - begin > 5) fail("stages and microbatches are less than 100000");
    }
    if (at_ == begin) fail(action_form);
    return number;
  }

  std::string_view line_;
  const std::string& source_;
  size_t number_;
  size_t at_ = 0;
  size_t entry_ = 0;
};

/// Adds microbatches and the devices of stages, from the actions.
void add_shape(PipelineSchedule& schedule, const std::string& source) {
  int64_t stages = 0;
  size_t count = 0;
  for (const auto& device : schedule.actions) {
    count += device.size();
    for (const PipelineAction& action : device) {
      stages = std::max(stages, action.stage + 1);
      schedule.microbatches = std::max(schedule.microbatches, action.microbatch + 1);
    }
  }
  // Numbers far from all others would take memory for what is between.
  if (static_cast<size_t>(stages * schedule.microbatches) > count) {
    throw ConfigError(source,
                      str("a schedule of ", stages, " stages and ", schedule.microbatches,
                          " microbatches has an F for each pair of them"),
                      str(count, " actions"), "add what is missing, or correct a number");
  }
  schedule.device_of.assign(static_cast<size_t>(stages), -1);
  for (size_t d = 0; d < schedule.actions.size(); ++d) {
    for (const PipelineAction& action : schedule.actions[d]) {
      int64_t& device = schedule.device_of[static_cast<size_t>(action.stage)];
      if (computes(action.kind) && device < 0) device = static_cast<int64_t>(d);
    }
  }
  const auto nowhere = std::find(schedule.device_of.begin(), schedule.device_of.end(), -1);
  if (nowhere == schedule.device_of.end()) return;
  throw ConfigError(source, str("each of the ", stages, " stages is computed"),
                    str("no action of stage ", nowhere - schedule.device_of.begin()),
                    "number stages from 0, without a gap");
}

std::string_view without_end(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

PipelineSchedule parse_schedule(std::string_view text, const std::string& source) {
  PipelineSchedule schedule;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  for (size_t at = 0, number = 1; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = without_end(text.substr(at, end - at));
    schedule.actions.push_back(LineParser(line, source, number).parse());
    if (schedule.actions.back().empty()) {
      throw ConfigError(str(source, ":", number, ":1"), "a line has the actions of a device",
                        "a line without any", "remove it, or add them");
    }
    at = end + 1;
  }
  if (schedule.actions.empty()) {
    throw ConfigError(source, "a schedule has a line for each device", "an empty file", "");
  }
  add_shape(schedule, source);
  return schedule;
}

PipelineSchedule read_schedule_file(const std::string& path) {
  PipelineSchedule schedule = parse_schedule(read_file(path, max_file_bytes), path);
  check_schedule(schedule, {.where = path});
  return schedule;
}

std::string to_csv(const PipelineSchedule& schedule) {
  std::string text;
  for (const auto& device : schedule.actions) {
    for (size_t i = 0; i < device.size(); ++i) text += (i ? "," : "") + to_string(device[i]);
    text += "\n";
  }
  return text;
}

}  // namespace tessera::detail
