#include <tessera/framework/parameter_server/store/push_plan.hpp>

#include <algorithm>

#include <ATen/ATen.h>

namespace tessera::detail {

namespace {

void check_count(const char* what, size_t count, const VariableGroup& of) {
  if (count == of.variables.size() || count == 0) return;
  throw ConfigError("push", str(what, ": one for each variable, ", of.variables.size()), str(count),
                    "pass an undefined one for none");
}

/// Adds the defined `tensors`, which are in the variables' order.
void add_sources(std::vector<Source>& sources, const VariableGroup& of,
                 const std::vector<at::Tensor>& tensors, int kind) {
  for (size_t v = 0; v < tensors.size(); ++v) {
    const Variable& variable = of.variables[v];
    if (!tensors[v].defined()) continue;
    if (tensors[v].sizes() != variable.shape()) {
      throw ShapeError(variable.path(), "a tensor of shape " + to_string(variable.shape()),
                       to_string(tensors[v].sizes().vec()), "push tensors in variables' order");
    }
    if (kind == 0 && !(of.optimizer && of.plan.trained[v])) {
      throw ConfigError(variable.path(), "a variable that is trained", "a gradient",
                        "push a difference");
    }
    sources.push_back({v, kind, tensors[v].cpu().to(variable.dtype()).contiguous()});
  }
}

}  // namespace

PushPlan plan_push(const VariableGroup& of, const std::vector<at::Tensor>& gradients,
                   const std::vector<at::Tensor>& added) {
  check_count("gradients", gradients.size(), of);
  check_count("added", added.size(), of);
  PushPlan plan;
  add_sources(plan.sources, of, gradients, 0);
  const bool step = !plan.sources.empty();
  add_sources(plan.sources, of, added, -1);
  std::stable_sort(plan.sources.begin(), plan.sources.end(),
                   [](const Source& a, const Source& b) { return a.variable < b.variable; });
  std::vector<bool> sent(of.variables.size());
  for (const Source& source : plan.sources) sent[source.variable] = true;
  plan.steps.resize(static_cast<size_t>(of.plan.servers));
  std::vector<bool> concerned = plan.steps;
  for (const Part& part : of.plan.parts) {
    const auto server = static_cast<size_t>(part.server);
    const bool steps = step && of.optimizer && of.plan.trained[part.variable];
    if (steps) plan.steps[server] = true;
    if (steps || sent[part.variable]) concerned[server] = true;
  }
  for (int server = 0; server < of.plan.servers; ++server) {
    if (concerned[static_cast<size_t>(server)]) plan.servers.push_back(server);
  }
  return plan;
}

}  // namespace tessera::detail
