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
  /// Whether an optimizer or one of its inner optimizers keeps moving averages.
  static bool enabled(const Optimizer& optimizer);
  /// Exchanges the variables of an optimizer and its inner ones with their moving averages, if
  /// there was an update; a second call exchanges them back.
  static void swap(Optimizer& optimizer);
  /// Whether the variables of an optimizer or an inner one are exchanged with their moving
  /// averages. Optimizer::finalize_variable_values() ends the exchange.
  static bool swapped(const Optimizer& optimizer);

  /// Adds a variable and its average, which is a variable too.
  void add(const Variable& variable, const Variable& average);
  /// Updates every average: momentum · average + (1 - momentum) · variable.
  void update(double momentum);
  /// Overwrites every variable with its average.
  void overwrite();
  /// Overwrites these variables with their averages permanently, also while the two are exchanged.
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
