#include <tessera/framework/io/keras/legacy_slots.hpp>

#include <algorithm>
#include <map>

#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>

namespace tessera::detail {
namespace {

/// Returns the last part of a name, without TensorFlow's number of the output: "m" of
/// "Adam/dense/kernel/m:0".
std::string last_part(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.find(':'));
}

bool is_step(const std::string& name) { return name == "iter" || name == "iterations"; }

/// Returns the name here of a slot of Keras up to 2.10; empty for another name.
std::string slot_name(const std::string& legacy_name, const std::string& optimizer_class) {
  static const std::map<std::string, std::string> table = {{"m", "momentum"},
                                                           {"v", "velocity"},
                                                           {"vhat", "velocity_hat"},
                                                           {"momentum", "momentum"},
                                                           {"rms", "velocity"},
                                                           {"mg", "average_gradient"},
                                                           {"accumulator", "accumulator"},
                                                           {"accum_grad", "accumulated_grad"},
                                                           {"accum_var", "accumulated_delta_var"},
                                                           {"linear", "linear"}};
  if (optimizer_class == "Adamax" && legacy_name == "v") return "norm";
  const auto found = table.find(legacy_name);
  return found == table.end() ? "" : found->second;
}

/// Whether a slot has a number only: "Variable_3", "m_3".
bool is_numbered(const std::string& name) {
  for (const char* start : {"Variable", "m_", "v_", "vhat_"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

}  // namespace

bool has_legacy_slots(const std::vector<KerasData>& data) {
  return std::any_of(data.begin(), data.end(), [](const KerasData& each) {
    const std::string name = last_part(each.dataset->path);
    return is_step(name) || is_numbered(name) || !slot_name(name, "").empty();
  });
}

std::optional<std::vector<KerasMatch>> match_legacy_slots(
    const std::vector<KerasData>& data, const std::string& optimizer_class, const KerasValue& steps,
    const std::vector<std::vector<Variable>>& slots) {
  std::vector<KerasMatch> matches;
  std::map<std::string, std::vector<KerasData>> named;
  std::vector<KerasData> numbered;
  for (const KerasData& each : data) {
    const std::string name = last_part(each.dataset->path);
    if (is_step(name)) {
      const Hdf5Dataset& number = *each.dataset;
      if (!number.shape.empty() || !safetensors_scalar_type(number.dtype)) return std::nullopt;
      matches.push_back({steps, each});
    } else if (is_numbered(name)) {
      numbered.push_back(each);
    } else {
      named[slot_name(name, optimizer_class)].push_back(each);
    }
  }
  if (named.empty() && numbered.empty()) return matches;  // saved before the first step
  for (size_t w = 0; w < slots.size(); ++w) {
    for (size_t s = 0; s < slots[w].size(); ++s) {
      const std::string path = slots[w][s].path();
      const std::vector<KerasData>& own = named[path.substr(path.rfind('/') + 1)];
      const size_t at = s * slots.size() + w;
      if (own.size() != slots.size() && at >= numbered.size()) return std::nullopt;
      matches.push_back({{.what = path, .variable = slots[w][s]},
                         own.size() == slots.size() ? own[w] : numbered[at]});
      if (!describe_mismatch(matches.back()).empty()) return std::nullopt;
    }
  }
  return matches;
}

}  // namespace tessera::detail
