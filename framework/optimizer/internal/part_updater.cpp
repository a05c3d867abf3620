#include <tessera/framework/optimizer/internal/part_updater.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

void PartUpdater::build(const Variable& part, const Variable& whole) {
  Optimizer& optimizer = *optimizer_;
  if (optimizer.knows(part)) {
    throw StateError(part.path(), "a part's slots are created once", "a part that has slots",
                     "build it once");
  }
  const std::vector<SlotSpec> specs = optimizer.slot_specs(whole);
  // Parts get their values after their slots are created, and their owner expects slots of the
  // part's shape.
  const bool odd = std::any_of(specs.begin(), specs.end(), [](const SlotSpec& spec) {
    return spec.starts_as_variable || spec.without_axis;
  });
  const bool cut = part.shape() != whole.shape();
  if (!optimizer.inner().empty() || odd || (optimizer.needs_whole_variable() && cut)) {
    throw ConfigError(optimizer.class_name(),
                      "the optimizer must be able to update parts of variables separately",
                      str("a part ", to_string(part.shape()), " of ", whole.path(), " ",
                          to_string(whole.shape())),
                      "use an optimizer such as Adam, or do not partition variables");
  }
  optimizer.build_as(part, whole);
}

void PartUpdater::apply(const std::vector<DTensor>& gradients, const std::vector<Variable>& parts) {
  optimizer_->apply_ready(gradients, parts);
}

}  // namespace tessera::detail
