#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/bench/comparison.hpp"

namespace tessera::bench {

using namespace detail;

/// A program that does the work of a comparison: a LineProcess that answers with the
/// "milliseconds" of as many steps as it is told to make.
struct Contender {
  std::string key;  ///< of its figure
  std::string who;
  std::vector<std::string> command;
  bool terminal = false;  ///< whether it draws a progress bar
};

/// Our own: `bench compare-work` with these arguments.
Contender own_contender(const std::string& key, const std::string& who,
                        const std::vector<std::string>& arguments);

/// The Python environments of a run and the peers that they have.
class Peers {
 public:
  /// Asks each for its packages; `folder` has the peers' programs. Throws ConfigError for one that
  /// is no Python.
  Peers(const std::vector<std::string>& interpreters, std::string folder);
  /// A program under a peer ("torch", "tensorflow", "jax", "keras", "pandas", "pillow"); `how`
  /// follows its name in the table. Nothing if no environment has it.
  std::optional<Contender> find(const std::string& key, const std::string& peer,
                                const std::string& how, const std::string& program,
                                const std::vector<std::string>& arguments) const;
  /// A line for each peer: its version, or that it was not found.
  std::string to_string() const;
  /// Versions by the peers' names, of those that were found.
  Json versions() const;

 private:
  struct EnvironmentLookup {
    std::string python;
    std::map<std::string, std::string> versions;
  };
  const EnvironmentLookup* environment_of(const std::string& peer) const;

  std::string folder_;
  std::vector<EnvironmentLookup> environments_;
};

struct TurnOptions {
  int64_t rounds = 5;
  int64_t steps = 40;   ///< of a round; fewer where they would take long
  int64_t warm_up = 3;  ///< steps of each turn that are not timed
};

/// Figures by the contenders' keys.
using Figures = std::map<std::string, Figure>;

/// Starts all, lets each make a first step, and then rounds in which they take turns: the medians
/// of each round. A peer that ends early is left out, and a line says so. Throws ConfigError if our
/// own does.
Figures take_turns(const std::vector<Contender>& contenders, const TurnOptions& options);

}  // namespace tessera::bench
