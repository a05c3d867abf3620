#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/variable.hpp>
#include <tessera/framework/parameter_server/partitioner.hpp>

namespace tessera::detail {

/// A piece of a variable that rests on one server: some of its rows, or all of a scalar.
struct Part {
  size_t variable = 0;  ///< number in its group
  int server = 0;
  int number = 0;      ///< among the parts of its group on that server
  Interval rows = {};  ///< interval of axis 0; {0, 1} for a scalar
  Shape shape = {};
};

/// Where the variables of a group rest: the parts of one after those of the other.
struct PartPlan {
  std::vector<Part> parts;
  std::vector<std::string> paths;  ///< paths of the variables
  std::vector<at::ScalarType> dtypes;
  std::vector<bool> trained;  ///< by gradients
  int servers = 1;
  /// Parts that lie on a server, in order of their numbers.
  std::vector<Part> of_server(int server) const;
  /// What all tasks must have alike, one line; variables are set apart by "; ".
  std::string describe() const;
};

/// Cuts variables and deals the parts out, the first one to `first_server`. Row intervals are
/// shard_interval()s. Throws ConfigError for a variable with a constraint that would be cut, and
/// where the partitioner gives fewer than 1 part or more than there are rows.
PartPlan plan_parts(const std::vector<Variable>& variables,
                    const strategy::Partitioner& partitioner, int servers, int first_server = 0);

}  // namespace tessera::detail
