#pragma once

#include <optional>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/data/dataset.hpp>

namespace tessera::detail {

/// While alive, this thread calls a data pipeline's function on these rows of a global batch. It
/// may call layers whose random numbers follow from the row.
class RowPartScope {
 public:
  explicit RowPartScope(std::optional<RowPart> part);

 private:
  ScopedValue<std::optional<RowPart>> part_;
};
/// Returns the global index of the first of `rows` rows: the innermost RowPartScope's if it has
/// that many, otherwise 0.
int64_t scoped_first_row(int64_t rows);

}  // namespace tessera::detail
