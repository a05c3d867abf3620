#include <tessera/framework/optimizer/internal/part_updater.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

void PartUpdater::build(const Variable& part, const Variable& variable) {
  Optimizer& optimizer = *optimizer_;
  if (optimizer.knows(part)) {
    throw StateError(part.path(), "a part's slots are created once", "a part that has slots",
                     "build it once");
  }
  const std::vector<SlotSpec> specs = optimizer.slot_specs(variable);
  // Parts get their values after their slots are created, and their owner expects slots of the
  // part's shape.
  const bool unsupported_slots = std::any_of(specs.begin(), specs.end(), [](const SlotSpec& spec) {
    return spec.starts_as_variable || spec.without_axis;
  });
  const bool partitioned = part.shape() != variable.shape();
  if (!optimizer.inner().empty() || unsupported_slots ||
      (optimizer.needs_full_variable() && partitioned)) {
    throw ConfigError(optimizer.class_name(),
                      "the optimizer must be able to update parts of variables separately",
                      str("a part ", to_string(part.shape()), " of ", variable.path(), " ",
                          to_string(variable.shape())),
                      "use an optimizer such as Adam, or do not partition variables");
  }
  optimizer.build_as(part, variable);
}

void PartUpdater::apply(const std::vector<DTensor>& gradients, const std::vector<Variable>& parts) {
  optimizer_->apply_ready(gradients, parts);
}

}  // namespace tessera::detail
