#include <tessera/layers/preprocessing/internal/column_layer.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

at::Tensor ColumnLayer::text_categories(const std::vector<std::string>&) const {
  throw ConfigError(class_name() + " " + path(), "the layer is called on numbers", "texts",
                    "use StringLookup or Hashing for texts");
}

}  // namespace tessera::detail
