#pragma once

#include <span>
#include <string_view>

#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::detail {

/// Returns int64 `indices`, checked to be in [least, count); `ranges`: the global intervals of
/// their block. Throws ConfigError naming the first index out of range and its position. On a GPU,
/// the error is thrown when this thread next reads from that GPU; until then, the returned indices
/// are clamped.
at::Tensor checked_indices(std::string_view op, std::string_view what, const at::Tensor& indices,
                           int64_t count, std::span<const Interval> ranges = {}, int64_t least = 0);
/// Returns indices that were checked before: clamped to [0, count) on a GPU, unchanged on the CPU.
at::Tensor clamped_indices(const at::Tensor& indices, int64_t count);
/// Returns the kernel that checked_indices() runs on GPUs (for tests).
const DeviceKernel& index_kernel();

/// Throws ConfigError unless the input is of dtype int64.
void check_index_dtype(std::string_view op, std::string_view what, const Spec& in);

/// Casts any integer dtype to int64; returns other dtypes unchanged, for infer() to reject.
DTensor to_int64_indices(const DTensor& indices);

/// Returns a vector of zeros that carries only the sharding of an axis of `extent`: over `dims`,
/// less the dimensions that `users` already use. Tells an operation how to shard an output axis
/// that none of its other inputs has.
DTensor axis_marker(int64_t extent, const std::vector<int>& dims,
                    std::initializer_list<DTensor> users);

}  // namespace tessera::detail
