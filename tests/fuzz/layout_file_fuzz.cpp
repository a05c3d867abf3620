#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/mesh/layout_file.hpp>
#include <tessera/framework/mesh/mesh.hpp>

#include "tests/fuzz/memory_file.hpp"

using namespace tessera;
using namespace tessera::detail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const LayoutFile file = layout_file_from_json(parse_json(text, "layouts.json"), "layouts.json");
    // An accepted file describes a map over a mesh, or is refused for that mesh.
    const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}}, virtual_cpus(4));
    const LayoutMap map = make_layout_map(file, mesh);
    const Json written = to_json(map);
    fuzz::require(to_json(layout_map_from_json(written, mesh)) == written);
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
