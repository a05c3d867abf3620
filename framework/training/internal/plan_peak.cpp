#include <tessera/framework/training/internal/plan_peak.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/drawing/styled_table.hpp>

namespace tessera::detail {
namespace {

/// Describes the size of a device's peak: "1.5 MB on device 0".
std::string size_text(const StepPlan& plan, size_t device) {
  return str(readable_bytes(plan.peaks[device].total()), " on device ", device);
}

}  // namespace

size_t fullest_device(const StepPlan& plan) {
  const auto fullest = std::max_element(
      plan.peaks.begin(), plan.peaks.end(),
      [](const StepPlan::Peak& a, const StepPlan::Peak& b) { return a.total() < b.total(); });
  return static_cast<size_t>(fullest - plan.peaks.begin());
}

std::string parts_text(const StepPlan::Peak& peak) {
  std::string text;
  for (MemoryUse use : memory_uses) {
    const double bytes = peak[use];
    if (bytes > 0)
      text += str(text.empty() ? "" : ", ", to_string(use), " ", readable_bytes(bytes));
  }
  return text;
}

std::string peak_text(const StepPlan& plan) {
  if (plan.peaks.empty()) return "";
  const size_t device = fullest_device(plan);
  const StepPlan::Peak& peak = plan.peaks[device];
  return str(size_text(plan, device), peak.place.empty() ? "" : " in " + peak.place, " (",
             parts_text(peak), ")");
}

std::string memory_text(const StepPlan& plan) {
  const size_t device = fullest_device(plan);
  std::vector<std::pair<double, std::string>> layers;
  for (const StepPlan::Row& row : plan.layers) {
    const double bytes = row.weights[device] + row.slots[device] + row.gathered[device] +
                         row.casts[device] + row.gradients[device] + row.activations[device];
    layers.emplace_back(bytes, row.path);
  }
  std::stable_sort(layers.begin(), layers.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string largest;
  for (size_t l = 0; l < std::min<size_t>(layers.size(), 3); ++l) {
    largest += str(l == 0 ? "" : ", ", layers[l].second, " ", readable_bytes(layers[l].first));
  }
  return str(size_text(plan, device), ": ", parts_text(plan.peaks[device]),
             "; the largest layers need ", largest);
}

std::string memory_advice() {
  return "shard what is largest (layouts.fully_shard), rematerialize layers, or take smaller "
         "batches";
}

}  // namespace tessera::detail
