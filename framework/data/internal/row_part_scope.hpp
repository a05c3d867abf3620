#pragma once

#include <optional>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/data/dataset.hpp>

namespace tessera::detail {

/// While alive, what this thread calls is given these rows of a global batch: a data pipeline's
/// function, which may call layers whose random numbers follow from the row.
class RowPartScope {
 public:
  explicit RowPartScope(std::optional<RowPart> part);

 private:
  ScopedValue<std::optional<RowPart>> part_;
};
/// Number in the global batch of the first of so many rows: 0 unless they are the rows of the
/// innermost RowPartScope.
int64_t first_row_in_force(int64_t rows);

}  // namespace tessera::detail
