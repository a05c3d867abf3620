#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/parameter_server/store/store_client.hpp>

namespace tessera::detail {

/// What of a program coordinator and tasks must have alike.
struct JobProgram {
  std::vector<std::string> functions, datasets;  ///< names
  std::vector<std::string> groups;               ///< groups of variables and their optimizer
};

std::string describe_group(const VariableGroup& group);
std::string to_text(const JobProgram& program);
/// Throws ConfigError for another text than that.
JobProgram program_from_text(const std::string& text);

/// The first thing that the coordinator has and a task lacks, or that differs, one line; nothing if
/// they agree. `same_place`: both are in the same fit; else one may have registered more so far,
/// and what both have is compared.
std::optional<std::string> difference(const JobProgram& coordinator, const JobProgram& task,
                                      bool same_place);

}  // namespace tessera::detail
