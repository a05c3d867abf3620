#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/optimizer/optimizer.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

/// Sums over the blocks of values, without waiting for GPUs.
namespace tessera::detail {

/// One number for each of several values that are sharded over the same mesh dimensions.
struct ValueSet {
  std::vector<size_t> members;  ///< indices of the values
  DTensor numbers;              ///< one element per value, float64, replicated
};

/// Returns the sums of squares of values, none of which is a partial sum. Collective: one
/// all-reduce for each set of mesh dimensions over which some values are sharded. Does not wait for
/// GPUs.
std::vector<ValueSet> squared_norms(const std::vector<DTensor>& values);

/// Returns sets whose total is that of squared_norms() and which every process has, also of values
/// on several views of a mesh: one more all-reduce of a number then. Collective.
std::vector<ValueSet> squared_norms_together(const std::vector<DTensor>& values);

/// Returns the sum of the numbers of all sets, on `device`; undefined if this process has none.
at::Tensor total_of(const std::vector<ValueSet>& sets, c10::Device device);

/// Returns f(numbers) on each device that holds the numbers of a set.
template <class F>
ScalarOnDevices on_each_device(const ValueSet& set, const F& f) {
  ScalarOnDevices results;
  for (const at::Tensor& block : set.numbers.blocks()) {
    at::Tensor& result = results[block.device()];
    if (!result.defined()) result = f(block);
  }
  return results;
}

/// One number per value, on every device that has blocks of it.
class ValueNumbers {
 public:
  explicit ValueNumbers(size_t values) : positions_(values) {}

  /// Adds the numbers of some values: a float64 vector on each device.
  void add(const std::vector<size_t>& members, ScalarOnDevices vectors) {
    for (size_t i = 0; i < members.size(); ++i) {
      positions_[members[i]] = {vectors_.size(), static_cast<int64_t>(i)};
    }
    for (auto& [device, vector] : vectors) vector = vector.contiguous();
    vectors_.push_back(std::move(vectors));
  }

  double on_host(size_t value) const {
    return vector(value, at::kCPU).const_data_ptr<double>()[positions_[value].index];
  }
  at::Tensor on_gpu(size_t value, c10::Device gpu) const {
    return vector(value, gpu)[positions_[value].index];
  }

 private:
  struct Position {
    size_t vectors = 0;
    int64_t index = 0;
  };
  const at::Tensor& vector(size_t value, c10::Device device) const {
    return vectors_[positions_[value].vectors].at(device);
  }

  std::vector<Position> positions_;
  std::vector<ScalarOnDevices> vectors_;
};

/// Sums of squares of some values and of their steps: float64 vectors on one device.
struct StepNorms {
  std::vector<size_t> members;  ///< indices of the values
  at::Tensor values, steps;
};

/// Subtracts from each value, in place, its step times a factor; a step has the blocks of its
/// value. factors(norms) returns the factors of norms.members, on the norms' device. Collective
/// like squared_norms().
void subtract_scaled(const std::vector<DTensor>& values, const std::vector<DTensor>& steps,
                     const std::function<at::Tensor(const StepNorms& norms)>& factors);

/// Whether all elements of values on CPUs, none of which is a partial sum, are finite. Collective
/// like squared_norms().
bool all_finite(const std::vector<DTensor>& values);

/// Returns, on the GPU of each of `blocks`, a float32 1 if any element of the values is not finite,
/// else 0. Collective like squared_norms(); does not wait for GPUs.
ScalarOnDevices non_finite_on_gpus(const std::vector<DTensor>& values, const Blocks& blocks);

}  // namespace tessera::detail
