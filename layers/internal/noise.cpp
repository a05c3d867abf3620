#include <tessera/layers/internal/noise.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/framework/ops/random.hpp>

namespace tessera::detail {

DTensor draw_seed(const CallContext& context, const std::string& path, const Mesh& mesh,
                  std::optional<int64_t> seed) {
  if (context.random) return context.random->next_input(path, mesh, seed);
  return ops::seed_input(seed ? fold_in({}, static_cast<uint64_t>(*seed)) : Seed{}, mesh);
}

void check_rate(const std::string& where, double rate) {
  if (rate >= 0 && rate < 1) return;
  throw ConfigError(where, "rate lies in [0, 1)", str(rate), "give the share of elements to drop");
}

}  // namespace tessera::detail
