#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/ops/linear_cross_entropy.hpp>
#include <tessera/framework/tensor/internal/deferred_value.hpp>

namespace tessera::detail {

/// The operands of ops::deferred_logits().
struct DeferredLogits final : DeferredValue {
  DTensor x, kernel, bias;
  ops::ClassAxis classes = ops::ClassAxis::last;
  std::string label = {};  ///< CommLabel of the layer

  DTensor compute() const override;
};

/// Returns the operands of logits from which linear_softmax_cross_entropy() computes a loss better
/// than from the logits: deferred ones that are large and whose contracted axis is not sharded.
/// Null for others.
const DeferredLogits* large_deferred_logits(const DTensor& logits);

/// The least number of elements of large logits, on all devices together; tests change it.
int64_t& least_large_logits();

}  // namespace tessera::detail
