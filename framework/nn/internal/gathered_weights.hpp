#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/nn/variable.hpp>

namespace tessera {
class Layer;
}

namespace tessera::detail {

/// Returns the weights for use in operations, as Variable::read(). All have a `use` layout on their
/// own mesh and the same `reshard`, and are all-gathered in one exchange where layouts and dtypes
/// allow it.
std::vector<DTensor> read_together(const std::vector<Variable>& weights,
                                   std::optional<at::ScalarType> dtype);

/// The call of a layer that runs: the first read of a weight that must be gathered gathers all such
/// weights of the layer, in one exchange instead of one each.
class GatheredWeights {
 public:
  explicit GatheredWeights(const Layer& layer);
  GatheredWeights(const GatheredWeights&) = delete;
  GatheredWeights& operator=(const GatheredWeights&) = delete;

  /// Returns a weight of the layer in a dtype (default: its own) for use in an operation.
  static DTensor read(const Layer& layer, const Variable& weight,
                      std::optional<at::ScalarType> dtype);

 private:
  /// A gathered weight that has not been read yet. It is given out once, so that it is held no
  /// longer than by who reads it.
  struct Gathered {
    uint64_t weight = 0, version = 0;
    DTensor value;
  };
  /// Circumstances of the gathering, which are the same where a weight is given out: tapes and
  /// recomputation know the operation where it ran.
  struct Context {
    std::optional<at::ScalarType> dtype;
    size_t tapes = 0;
    uint64_t region = 0;
    bool operator==(const Context&) const = default;
  };
  DTensor take(const Variable& weight, std::optional<at::ScalarType> dtype);
  void gather(const Variable& first, const Context& context);

  const Layer& layer_;
  GatheredWeights* const outer_;
  std::optional<Context> context_;  ///< none before the first read
  std::vector<Gathered> gathered_;
  ScopedValue<GatheredWeights*> scope_;
};

}  // namespace tessera::detail
