#include <tessera/layers/internal/packed_documents.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::detail {

void check_documents(const std::string& where, const DTensor& documents, int64_t batch,
                     int64_t steps) {
  const bool integral = at::isIntegralType(documents.dtype(), /*includeBool=*/false);
  if (integral && documents.shape() == Shape{batch, steps}) return;
  throw ShapeError(where, str("document ids are integers ", to_string(Shape{batch, steps})),
                   str(c10::toString(documents.dtype()), ' ', to_string(documents.shape())),
                   "give an id to each step");
}

DTensor document_mask(const DTensor& documents) {
  return ops::equal(ops::expand_dims(documents, -1), ops::expand_dims(documents, -2));
}

DTensor document_positions(const DTensor& documents) {
  // The row of a step counts the earlier steps of its document.
  return ops::sum(ops::tril(ops::cast(document_mask(documents), at::kInt), -1), {-1});
}

}  // namespace tessera::detail
