#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/autodiff/internal/remat_region.hpp>
#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/nn/remat_scope.hpp>

namespace tessera {
class Layer;
}

namespace tessera::detail {

/// The remat mode of a layer: RematScopeOptions with the policy looked up.
struct LayerRemat {
  RematMode mode = RematMode::full;
  int64_t threshold = 0;
  std::vector<std::string> names = {};
  SavedOps saved = {};
};

/// Makes a call of a layer, while alive, a region that is rematerialized, if a tape records and the
/// layer's mode says so.
class RematCall {
 public:
  /// `remat` is null for a layer without a mode; `in`: the shapes of the inputs.
  RematCall(const LayerRemat* remat, const Layer& layer, const std::vector<Shape>& in);

 private:
  std::optional<RematRegionScope> region_;
  std::optional<ScopedValue<bool>> activations_;
};

}  // namespace tessera::detail
