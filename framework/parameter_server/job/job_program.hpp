#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/parameter_server/store/store_client.hpp>

namespace tessera::detail {

/// The registrations of a program, which must be equal on all tasks.
struct JobProgram {
  std::vector<std::string> functions, datasets;  ///< names
  std::vector<std::string> groups;               ///< descriptions of variables and their optimizer
};

std::string describe_group(const VariableGroup& group);
std::string to_text(const JobProgram& program);
/// Parses a text of to_text(). Throws ConfigError if it is invalid.
JobProgram program_from_text(const std::string& text);

/// Describes, in one line, the first registration that the task lacks or that differs; nullopt if
/// there is none. `same_phase`: both are in the same fit; otherwise one may have registered more so
/// far, and only the common groups are compared.
std::optional<std::string> difference(const JobProgram& coordinator, const JobProgram& task,
                                      bool same_phase);

}  // namespace tessera::detail
