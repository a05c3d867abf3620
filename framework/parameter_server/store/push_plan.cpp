#include <tessera/framework/parameter_server/store/push_plan.hpp>

#include <algorithm>

#include <ATen/ATen.h>

namespace tessera::detail {

namespace {

void check_count(const char* what, size_t count, const VariableGroup& group) {
  if (count == group.variables.size() || count == 0) return;
  throw ConfigError("push", str(what, ": one for each variable, ", group.variables.size()),
                    str(count), "pass an undefined one for none");
}

/// Adds the defined `tensors`, which are in the variables' order.
void add_sources(std::vector<Source>& sources, const VariableGroup& group,
                 const std::vector<at::Tensor>& tensors, int kind) {
  for (size_t v = 0; v < tensors.size(); ++v) {
    const Variable& variable = group.variables[v];
    if (!tensors[v].defined()) continue;
    if (tensors[v].sizes() != variable.shape()) {
      throw ShapeError(variable.path(), "a tensor of shape " + to_string(variable.shape()),
                       to_string(tensors[v].sizes().vec()), "push tensors in variables' order");
    }
    if (kind == 0 && !(group.optimizer && group.plan.trained[v])) {
      throw ConfigError(variable.path(), "a variable that is trained", "a gradient",
                        "push a difference");
    }
    sources.push_back({v, kind, tensors[v].cpu().to(variable.dtype()).contiguous()});
  }
}

}  // namespace

PushPlan plan_push(const VariableGroup& group, const std::vector<at::Tensor>& gradients,
                   const std::vector<at::Tensor>& added) {
  check_count("gradients", gradients.size(), group);
  check_count("added", added.size(), group);
  PushPlan plan;
  add_sources(plan.sources, group, gradients, 0);
  const bool step = !plan.sources.empty();
  add_sources(plan.sources, group, added, -1);
  std::stable_sort(plan.sources.begin(), plan.sources.end(),
                   [](const Source& a, const Source& b) { return a.variable < b.variable; });
  std::vector<bool> sent(group.variables.size());
  for (const Source& source : plan.sources) sent[source.variable] = true;
  plan.steps.resize(static_cast<size_t>(group.plan.servers));
  std::vector<bool> involved = plan.steps;
  for (const Part& part : group.plan.parts) {
    const auto server = static_cast<size_t>(part.server);
    const bool steps = step && group.optimizer && group.plan.trained[part.variable];
    if (steps) plan.steps[server] = true;
    if (steps || sent[part.variable]) involved[server] = true;
  }
  for (int server = 0; server < group.plan.servers; ++server) {
    if (involved[static_cast<size_t>(server)]) plan.servers.push_back(server);
  }
  return plan;
}

}  // namespace tessera::detail
