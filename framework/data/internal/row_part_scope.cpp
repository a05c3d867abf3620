#include <tessera/framework/data/internal/row_part_scope.hpp>

#include <utility>

namespace tessera::detail {
namespace {

thread_local std::optional<RowPart> current_part;

}  // namespace

RowPartScope::RowPartScope(std::optional<RowPart> part) : part_(current_part, std::move(part)) {}

int64_t scoped_first_row(int64_t rows) {
  return current_part && current_part->rows.size() == rows ? current_part->rows.lo : 0;
}

}  // namespace tessera::detail
