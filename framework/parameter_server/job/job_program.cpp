#include <tessera/framework/parameter_server/job/job_program.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {

namespace {

constexpr size_t shown_bytes = 200;

std::optional<std::string> missing(const char* what, const std::vector<std::string>& expected,
                                   const std::vector<std::string>& have) {
  for (const std::string& name : expected) {
    if (std::find(have.begin(), have.end(), name) != have.end()) continue;
    return str("no ", what, " ", in_quotes(name), " here, but on the coordinator");
  }
  return std::nullopt;
}

/// Returns `text` from the beginning of the first word that differs from `other`, in quotes.
std::string from_difference(const std::string& text, const std::string& other) {
  const auto [at, unused] = std::mismatch(text.begin(), text.end(), other.begin(), other.end());
  size_t from = static_cast<size_t>(at - text.begin());
  while (from > 0 && text[from - 1] != ' ') --from;
  return in_quotes(text.substr(from), shown_bytes);
}

}  // namespace

std::string describe_group(const VariableGroup& group) {
  const std::string optimizer = group.optimizer ? group.optimizer->class_name() : "no optimizer";
  return str(optimizer, " ", group.plan.describe());
}

std::string to_text(const JobProgram& program) {
  return to_json_text(Json{{"functions", program.functions},
                           {"datasets", program.datasets},
                           {"groups", program.groups}},
                      -1);
}

JobProgram program_from_text(const std::string& text) {
  const Json json = parse_json(text, "program");
  JsonObject object(json, JsonPath("program"));
  JobProgram program;
  program.functions = object.take<std::vector<std::string>>("functions");
  program.datasets = object.take<std::vector<std::string>>("datasets");
  program.groups = object.take<std::vector<std::string>>("groups");
  object.finish();
  return program;
}

std::optional<std::string> difference(const JobProgram& coordinator, const JobProgram& task,
                                      bool same_phase) {
  if (same_phase) {
    if (auto text = missing("function", coordinator.functions, task.functions)) return text;
    if (auto text = missing("dataset", coordinator.datasets, task.datasets)) return text;
  }
  const size_t both = std::min(coordinator.groups.size(), task.groups.size());
  for (size_t g = 0; g < both; ++g) {
    const std::string &there = coordinator.groups[g], &here = task.groups[g];
    if (there == here) continue;
    return str("group ", g, " of variables has ", from_difference(here, there), " here, ",
               from_difference(there, here), " there");
  }
  return std::nullopt;
}

}  // namespace tessera::detail
