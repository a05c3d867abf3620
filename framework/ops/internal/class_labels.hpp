#pragma once

#include <ATen/ATen.h>

#include <tessera/framework/tensor/internal/sharding.hpp>

namespace tessera::detail {

/// The labels' positions within a shard of the class axis.
struct LocalLabels {
  LocalLabels() = default;
  LocalLabels(const at::Tensor& labels, Interval shard)
      : index(labels.sub(shard.lo).unsqueeze_(-1)),
        inside(index.ge(0).logical_and_(index.lt(shard.size()))) {
    index.clamp_(0, shard.size() - 1);
  }
  at::Tensor index;   ///< (…, 1), relative to the shard; clamped to it where not inside
  at::Tensor inside;  ///< (…, 1), whether the shard holds the label
};

}  // namespace tessera::detail
