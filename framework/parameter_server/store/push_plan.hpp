#pragma once

#include <vector>

#include <tessera/framework/parameter_server/store/store_calls.hpp>

namespace tessera::detail {

/// The tensors that a push sends, and their servers.
struct PushPlan {
  std::vector<Source> sources;  ///< sorted by variable
  std::vector<int> servers;     ///< servers that receive a tensor or count the step
  std::vector<bool> steps;      ///< by server: whether its optimizer runs a step
};

/// Plans a push; see StoreClient::push() for arguments and errors.
PushPlan plan_push(const VariableGroup& group, const std::vector<at::Tensor>& gradients,
                   const std::vector<at::Tensor>& added);

}  // namespace tessera::detail
