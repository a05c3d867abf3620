#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace tessera::detail {

/// A table that follows from shapes alone, of an operation and what it asks for; `make` gives it on
/// the host. On a GPU it is what this thread uploaded when it first asked, so that a step that runs
/// again uploads nothing; CPUs keep none.
at::Tensor shape_table(std::string_view op, const std::vector<int64_t>& asked,
                       const at::TensorOptions& options, const std::function<at::Tensor()>& make);

}  // namespace tessera::detail
