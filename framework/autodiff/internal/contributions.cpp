#include <tessera/framework/autodiff/internal/contributions.hpp>

#include <utility>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/row_gradients.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::detail {

namespace {

/// Returns the sum in the wider dtype of the two.
DTensor sum_of(const DTensor& a, const DTensor& b) {
  const at::ScalarType dtype = c10::promoteTypes(a.dtype(), b.dtype());
  return ops::add(ops::cast(a, dtype), ops::cast(b, dtype));
}

/// Reshards by an operation, so that an outer tape can differentiate through it.
DTensor relayouted(const DTensor& gradient, const Layout& layout) {
  return gradient.layout() == layout ? gradient : ops::relayout(gradient, layout);
}

}  // namespace

void Contributions::add(const Contributions& others) {
  if (others.complete_.defined()) add(others.complete_);
  if (others.pending_.defined()) add(others.pending_);
}

void Contributions::add(const DTensor& gradient) {
  DTensor& sum = gradient.layout().is_partial() ? pending_ : complete_;
  if (!sum.defined()) {
    sum = gradient;
  } else {
    // The sum of two gradients that are pending over different dimensions may be complete.
    const DTensor first = std::exchange(sum, DTensor());
    const bool rows = first.is_row_sparse() && gradient.is_row_sparse();
    add(rows ? add_rows(first, gradient) : sum_of(first, gradient));
  }
}

DTensor Contributions::total(const Layout& layout) const {
  if (!complete_.defined()) return relayouted(pending_, layout);
  if (!pending_.defined()) return relayouted(complete_, layout);
  return sum_of(relayouted(complete_, layout), relayouted(pending_, layout));
}

DTensor Contributions::unresolved_total() const {
  if (!complete_.defined()) return pending_;
  return pending_.defined() ? sum_of(complete_, pending_) : complete_;
}

}  // namespace tessera::detail
