#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/model/config.hpp>
#include <tessera/framework/model/internal/activation_peak.hpp>
#include <tessera/tessera.hpp>

#include "tests/fuzz/memory_file.hpp"

using namespace tessera;
using namespace tessera::detail;

namespace {

/// Returns values that a reader may not expect.
const std::vector<Json>& odd_values() {
  static const std::vector<Json> values = {nullptr,
                                           true,
                                           false,
                                           0,
                                           1,
                                           -1,
                                           2,
                                           3,
                                           7,
                                           1.5,
                                           -0.5,
                                           1e308,
                                           1e-300,
                                           65536,
                                           2147483647,
                                           -2147483648,
                                           4294967296,
                                           9223372036854775807,
                                           int64_t{-1} << 63,
                                           "",
                                           "relu",
                                           "same",
                                           "x",
                                           "float16",
                                           "channels_first",
                                           "kernel",
                                           "../x",
                                           Json::array(),
                                           Json::object(),
                                           {nullptr},
                                           {1, 1},
                                           {2147483647, 2147483647},
                                           {0, 0},
                                           {-1},
                                           {{1, 2}, {3, 4}},
                                           {nullptr, 3},
                                           {"a", 0, 0}};
  return values;
}

void collect(Json& json, std::vector<Json*>& nodes) {
  nodes.push_back(&json);
  if (!json.is_structured()) return;
  for (Json& child : json) collect(child, nodes);
}

/// Changes one node of a tree: replaces it by an odd value or another node, or removes or
/// duplicates an entry.
void mutate(Json& tree, std::minstd_rand& random) {
  std::vector<Json*> nodes;
  collect(tree, nodes);
  Json& node = *nodes[random() % nodes.size()];
  const Json other = *nodes[random() % nodes.size()];
  switch (random() % 5) {
    case 0:
      node = other;
      break;
    case 1:
      if (node.is_array() && !node.empty()) node.push_back(node[random() % node.size()]);
      if (node.is_object() && other.is_object()) node.update(other);
      break;
    case 2:
      if (node.is_array() && !node.empty()) node.erase(random() % node.size());
      if (node.is_object() && !node.empty()) {
        node.erase(std::next(node.begin(), static_cast<std::ptrdiff_t>(random() % node.size())));
      }
      break;
    default:
      node = odd_values()[random() % odd_values().size()];
  }
}

/// Calls a model with one known input symbolically, as the loader of an export does.
void plan_call(const ModelHandle& model) {
  if (!model->built() || model->input_shapes().size() != 1) return;
  Shape shape = model->input_shapes()[0];
  for (int64_t& extent : shape) extent = extent < 0 ? 2 : extent;
  const Layout layout = Layout::replicated(default_mesh(), static_cast<int64_t>(shape.size()));
  const c10::InferenceMode inference;
  activation_peak(model.model(), shape, at::kFloat, layout, 1e9);
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

/// Mutates the JSON tree, and sometimes the bytes: most changed bytes are no longer JSON.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  std::minstd_rand random(seed);
  Json tree = Json::parse(data, data + size, nullptr, false);
  if (tree.is_discarded() || random() % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
  for (size_t changes = 1 + random() % 3; changes > 0; --changes) mutate(tree, random);
  const std::string text = tree.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const ModelHandle model = model_from_json(text, "model.json");
    // An accepted model is unchanged by writing and reading it.
    const std::string written = model.to_json();
    fuzz::require(model_from_json(written, "model.json").to_json() == written);
    plan_call(model);
  } catch (const Error&) {
  }
  return 0;
}
