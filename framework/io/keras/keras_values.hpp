#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <tessera/framework/io/keras/keras_store.hpp>
#include <tessera/framework/nn/variable.hpp>

namespace tessera::detail {

/// A value that Keras stores as a variable: a variable here, or a number with a getter and setter.
struct KerasValue {
  std::string what;  ///< for errors: the path of a weight
  Variable variable = {};
  /// Dtype, getter and setter of a 0-d number.
  at::ScalarType dtype = at::kFloat;
  std::function<double()> number = {};
  std::function<void(double)> set_number = {};
  /// Range of valid numbers.
  double min_number = 0, max_number = std::numeric_limits<double>::max();

  Shape shape() const { return variable.defined() ? variable.shape() : Shape{}; }
  at::ScalarType type() const { return variable.defined() ? variable.dtype() : dtype; }
};

/// A value, and the dataset to restore it from.
struct KerasMatch {
  KerasValue value;
  KerasData data;
};

/// Describes how a value and its data differ in shape or dtype; empty if they fit. Floating dtypes
/// fit each other, and so do integer dtypes.
std::string describe_mismatch(const KerasMatch& match);

/// Reads all data, each process only its own blocks, and then assigns them; if reading fails on any
/// process, nothing is changed on any. Collective. Throws FileError, also for a number out of
/// range.
void restore_values(const Mesh& mesh, const std::string& path,
                    const std::vector<KerasMatch>& matches);

}  // namespace tessera::detail
