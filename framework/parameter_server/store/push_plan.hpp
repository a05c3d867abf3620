#pragma once

#include <vector>

#include <tessera/framework/parameter_server/store/store_calls.hpp>

namespace tessera::detail {

/// What a push sends.
struct PushPlan {
  std::vector<Source> sources;  ///< by variable
  std::vector<int> servers;     ///< servers that something is for, and all that count the step
  std::vector<bool> steps;      ///< by server: whether its optimizer makes a step
};

/// Throws as StoreClient::push().
PushPlan plan_push(const VariableGroup& of, const std::vector<at::Tensor>& gradients,
                   const std::vector<at::Tensor>& added);

}  // namespace tessera::detail
