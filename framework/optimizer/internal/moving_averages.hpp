#pragma once

#include <vector>

#include <tessera/framework/nn/variable.hpp>

namespace tessera {
class Optimizer;
}

namespace tessera::detail {

/// The moving averages of the variables that an optimizer updates (use_ema).
class MovingAverages {
 public:
  /// Whether an optimizer keeps moving averages, or one of those inside it does.
  static bool kept(const Optimizer& optimizer);
  /// Exchanges the variables of an optimizer, and of those inside it, with their moving averages,
  /// if there was a step; a second time: back.
  static void swap(Optimizer& optimizer);
  /// Whether the variables of an optimizer, or of one inside it, are their moving averages.
  /// Optimizer::finalize_variable_values() leaves them so.
  static bool swapped(const Optimizer& optimizer);

  /// Adds a variable and its average, which is a variable too.
  void add(const Variable& variable, const Variable& average);
  /// Brings every average nearer to its variable; `momentum` is the share of what it was.
  void update(double momentum);
  /// Makes every variable its average.
  void overwrite();
  /// Makes these variables their averages for good, also where the two are exchanged.
  void finalize(const std::vector<Variable>& variables);

 private:
  struct Pair {
    Variable variable, average;
  };
  void exchange();

  std::vector<Pair> pairs_;
  bool swapped_ = false;
};

}  // namespace tessera::detail
