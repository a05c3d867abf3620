#include <tessera/framework/nn/dataset.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera {

const std::shared_ptr<const Dataset>& DatasetRef::rows(const std::string& where) const {
  if (rows_) return rows_;
  throw ConfigError(where, "any row can be read", stream_ ? "a stream of batches" : "no data",
                    "pass tensors or a Dataset");
}

}  // namespace tessera
