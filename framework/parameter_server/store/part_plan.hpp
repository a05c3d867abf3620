#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/variable.hpp>
#include <tessera/framework/parameter_server/partitioner.hpp>

namespace tessera::detail {

/// A part of a variable stored on one server: an interval of its rows, or a scalar.
struct Part {
  size_t variable = 0;  ///< index in its group
  int server = 0;
  int number = 0;      ///< index among the group's parts on that server
  Interval rows = {};  ///< interval of axis 0; {0, 1} for a scalar
  Shape shape = {};
};

/// Assignment of a group's variables to servers.
struct PartPlan {
  std::vector<Part> parts;         ///< ordered by variable
  std::vector<std::string> paths;  ///< paths of the variables
  std::vector<at::ScalarType> dtypes;
  std::vector<bool> trained;  ///< whether each variable is trained by gradients
  int servers = 1;
  /// Returns the parts stored on a server, ordered by number.
  std::vector<Part> of_server(int server) const;
  /// Describes the plan, which must be equal on all tasks, in one line; variables are separated by
  /// "; ".
  std::string describe() const;
};

/// Partitions variables and assigns the parts to servers round-robin, starting with `first_server`.
/// Row intervals are those of shard_interval(). Throws ConfigError if a variable with a constraint
/// would be split, or if the partitioner returns less than 1 part or more parts than rows.
PartPlan plan_parts(const std::vector<Variable>& variables,
                    const strategy::Partitioner& partitioner, int servers, int first_server = 0);

}  // namespace tessera::detail
