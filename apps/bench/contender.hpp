#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/bench/comparison.hpp"

namespace tessera::bench {

using namespace detail;

/// A program that does the work of a comparison: a LineProcess that runs the requested number of
/// steps and answers with their "milliseconds".
struct Contender {
  std::string key;  ///< key of its figure
  std::string who;
  std::vector<std::string> command;
  bool terminal = false;  ///< whether it draws a progress bar
};

/// Returns our own contender: `bench compare-work` with these arguments.
Contender own_contender(const std::string& key, const std::string& who,
                        const std::vector<std::string>& arguments);

/// The Python environments of a run and the peers that they contain.
class Peers {
 public:
  /// Asks each interpreter for its packages; `folder` has the peers' programs. Throws ConfigError
  /// for a path that is not a Python interpreter.
  Peers(const std::vector<std::string>& interpreters, std::string folder);
  /// Returns a program of a peer ("torch", "jax", "onnxruntime", ...), or
  /// nothing if no environment has it. `how` follows the peer's name in the table.
  std::optional<Contender> find(const std::string& key, const std::string& peer,
                                const std::string& how, const std::string& program,
                                const std::vector<std::string>& arguments) const;
  /// Returns the folder of the peers' programs.
  const std::string& folder() const { return folder_; }
  /// Returns a line per peer: its version, or that it was not found.
  std::string to_string() const;
  /// Returns the versions of the peers that were found, by name.
  Json versions() const;

 private:
  struct PythonEnvironment {
    std::string python;
    std::map<std::string, std::string> versions;
  };
  const PythonEnvironment* environment_of(const std::string& peer) const;

  std::string folder_;
  std::vector<PythonEnvironment> environments_;
};

struct TurnOptions {
  int64_t rounds = 5;
  int64_t steps = 40;   ///< timed steps per round; fewer if they are slow
  int64_t warm_up = 3;  ///< untimed steps at the start of each turn
};

/// Figures by the contenders' keys.
using Figures = std::map<std::string, Figure>;

/// Starts all contenders, lets each run a first step, and then rounds in which they take turns.
/// Returns the median of each round. A peer that ends early is left out, with a note. Throws
/// ConfigError if our own contender ends early.
Figures take_turns(const std::vector<Contender>& contenders, const TurnOptions& options);

}  // namespace tessera::bench
