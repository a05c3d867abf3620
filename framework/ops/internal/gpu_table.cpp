#include <tessera/framework/ops/internal/gpu_table.hpp>

#include <map>
#include <string>
#include <tuple>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/internal/placement.hpp>

namespace tessera::detail {
namespace {

/// Bounds the tables of a program whose shapes never repeat.
constexpr size_t max_bytes = size_t{64} << 20;

struct Tables {
  using Key = std::tuple<std::string, std::vector<int64_t>, at::ScalarType, c10::DeviceIndex>;
  std::map<Key, at::Tensor> by_key;
  size_t bytes = 0;
};

}  // namespace

at::Tensor cached_table(std::string_view op, const std::vector<int64_t>& arguments,
                        const at::TensorOptions& options, const std::function<at::Tensor()>& make) {
  const c10::Device device = options.device();
  const at::ScalarType dtype = c10::typeMetaToScalarType(options.dtype());
  if (device.is_cpu()) return make().to(dtype);
  static thread_local Tables tables;
  const Tables::Key key(op, arguments, dtype, device.index());
  if (const auto it = tables.by_key.find(key); it != tables.by_key.end()) return it->second;
  const at::Tensor table = moved_to(make().to(dtype), device);
  if (tables.bytes + table.nbytes() > max_bytes) tables = {};
  tables.bytes += table.nbytes();
  tables.by_key.emplace(key, table);
  return table;
}

}  // namespace tessera::detail
