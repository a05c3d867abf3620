#pragma once

#include <span>
#include <string_view>

#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::detail {

/// Integers in [least, count); `ranges`: what they are of a whole. Throws ConfigError naming the
/// first that lies outside, and its place. On a GPU that is thrown when this thread next reads from
/// it, and until then the indices outside are those of the ends.
at::Tensor checked_indices(std::string_view op, std::string_view what, const at::Tensor& indices,
                           int64_t count, std::span<const Interval> ranges = {}, int64_t least = 0);
/// Indices that were checked before: on a GPU, those outside are those of the ends.
at::Tensor clamped_indices(const at::Tensor& indices, int64_t count);
/// What checked_indices() runs on GPUs, for tests.
const DeviceKernel& index_kernel();

/// Throws ConfigError unless the input is of dtype int64.
void check_index_dtype(std::string_view op, std::string_view what, const Spec& in);

/// int64 from any integer dtype; other dtypes are returned as they are, for infer() to refuse.
DTensor as_indices(const DTensor& indices);

/// A vector of zeros that holds no information but how an axis of `extent` is cut: over `dims`,
/// less those that one of `users` is already cut over. It tells an operation whose output has an
/// axis that none of its inputs has how to cut that.
DTensor axis_marker(int64_t extent, const std::vector<int>& dims,
                    std::initializer_list<DTensor> users);

}  // namespace tessera::detail
