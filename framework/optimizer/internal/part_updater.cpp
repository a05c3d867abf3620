#include <tessera/framework/optimizer/internal/part_updater.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

void PartUpdater::build(const Variable& part, const Variable& whole) {
  Optimizer& optimizer = *optimizer_;
  if (optimizer.knows(part)) {
    throw StateError(part.path(), "a part that is new to the optimizer", "one that has slots",
                     "make its slots once");
  }
  const std::vector<SlotSpec> specs = optimizer.slot_specs(whole);
  // Who keeps parts gives them values later, and knows of slots of their shape.
  const bool odd = std::any_of(specs.begin(), specs.end(), [](const SlotSpec& spec) {
    return spec.begins_as_variable || spec.without_axis;
  });
  const bool cut = part.shape() != whole.shape();
  if (!optimizer.inner().empty() || odd || (optimizer.updates_whole() && cut)) {
    throw ConfigError(optimizer.class_name(),
                      "an optimizer that updates parts of variables by themselves",
                      str("a part ", to_string(part.shape()), " of ", whole.path(), " ",
                          to_string(whole.shape())),
                      "use an optimizer such as Adam, or one that keeps variables whole");
  }
  optimizer.build_as(part, whole);
}

void PartUpdater::apply(const std::vector<DTensor>& gradients, const std::vector<Variable>& parts) {
  optimizer_->apply_ready(gradients, parts);
}

}  // namespace tessera::detail
