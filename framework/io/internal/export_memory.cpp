#include <tessera/framework/io/internal/export_memory.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/host_memory.hpp>
#include <tessera/framework/drawing/styled_table.hpp>
#include <tessera/framework/io/internal/export_files.hpp>

namespace tessera::detail {
namespace {

constexpr double min_limit = 256 << 20;

bool on_this_host(const Mesh& mesh) {
  const std::vector<Device>& devices = mesh.local_devices();
  return mesh.is_local() && std::all_of(devices.begin(), devices.end(), [](const Device& device) {
           return device.type == Device::Type::cpu;
         });
}

/// Returns the dtype of a text layer's outputs.
at::ScalarType text_dtype(const TextLayer& text) {
  const std::string_view empty;
  return text.transform(std::span(&empty, 1)).scalar_type();
}

}  // namespace

double max_activation_bytes(const std::optional<int64_t>& option, const LayoutMap& layouts) {
  if (option) return static_cast<double>(*option);
  if (layouts.defined() && !on_this_host(layouts.mesh())) {
    return std::numeric_limits<double>::infinity();
  }
  return std::max(min_limit, static_cast<double>(available_memory()) / 2);
}

ActivationPeak predict_peak(const ExportedModel& exported, const Shapes& inputs, double limit) {
  std::vector<PeakInput> peaks;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Shape rows = inputs[i];
    rows.front() = std::min(rows.front(), export_batch_rows);
    const auto rank = static_cast<int64_t>(rows.size());
    peaks.push_back({std::move(rows),
                     exported.text ? text_dtype(*exported.text) : exported.inputs[i].dtype,
                     exported.layouts.data_layout("x", rank, i)});
  }
  return activation_peak(exported.model.model(), peaks, limit);
}

std::string peak_text(const ActivationPeak& peak) {
  return str(to_string(peak.shape), " of layer ", peak.layer, ", a total of ",
             readable_bytes(peak.bytes));
}

}  // namespace tessera::detail
