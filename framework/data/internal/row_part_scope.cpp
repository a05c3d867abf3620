#include <tessera/framework/data/internal/row_part_scope.hpp>

#include <utility>

namespace tessera::detail {
namespace {

thread_local std::optional<RowPart> part_in_force;

}  // namespace

RowPartScope::RowPartScope(std::optional<RowPart> part) : part_(part_in_force, std::move(part)) {}

int64_t scoped_first_row(int64_t rows) {
  return part_in_force && part_in_force->rows.size() == rows ? part_in_force->rows.lo : 0;
}

}  // namespace tessera::detail
