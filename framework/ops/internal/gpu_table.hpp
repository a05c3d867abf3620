#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace tessera::detail {

/// Returns the table of operation `op` for these `arguments`, which follow from shapes alone;
/// `make` computes it on the host. On a GPU, it is uploaded once per thread and kept, so that a
/// repeated step uploads nothing; on the CPU, it is not kept.
at::Tensor cached_table(std::string_view op, const std::vector<int64_t>& arguments,
                        const at::TensorOptions& options, const std::function<at::Tensor()>& make);

}  // namespace tessera::detail
