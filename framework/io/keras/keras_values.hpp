#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <tessera/framework/io/keras/keras_store.hpp>
#include <tessera/framework/nn/variable.hpp>

namespace tessera::detail {

/// What Keras keeps as a variable: a variable here, or a number that is kept otherwise.
struct KerasValue {
  std::string what;  ///< for errors: the path of a weight
  Variable variable = {};
  /// Of a number, 0-d: its dtype, what it is, and what takes another one.
  at::ScalarType dtype = at::kFloat;
  std::function<double()> number = {};
  std::function<void(double)> set_number = {};
  /// The least and the largest finite number that it takes.
  double least = 0, most = std::numeric_limits<double>::max();

  Shape shape() const { return variable.defined() ? variable.shape() : Shape{}; }
  at::ScalarType type() const { return variable.defined() ? variable.dtype() : dtype; }
};

/// A value, and the data in a file that it is to take.
struct KerasMatch {
  KerasValue value;
  KerasData data;
};

/// What does not fit between a value and data in shape or dtype; empty if they fit. Floating dtypes
/// fit each other, and whole numbers do.
std::string misfit(const KerasMatch& match);

/// Reads all of them, each process its own part, and then changes what is theirs; if that fails on
/// any process, nothing is changed on all. Collective. Throws FileError, also for a number that
/// cannot be.
void take_values(const Mesh& mesh, const std::string& path, const std::vector<KerasMatch>& matches);

}  // namespace tessera::detail
