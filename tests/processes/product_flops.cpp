// Compiled with NDEBUG, as libtorch is: the layout of at::RecordFunction depends on it.
#include "tests/processes/product_flops.hpp"

#include <atomic>
#include <string_view>

#include <ATen/ATen.h>
#include <ATen/record_function.h>

namespace tessera::test {

namespace {

std::atomic<int64_t> product_flops = 0;

/// Called by ATen before an operation. A product of m x k and k x n has 2 m k n.
std::unique_ptr<at::ObserverContext> count_product(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  const bool adds = name == "aten::addmm" || name == "aten::_addmm_activation";
  if (!adds && name != "aten::mm" && name != "aten::bmm") return nullptr;
  const size_t first = adds ? 1 : 0;
  const at::Tensor a = function.inputs()[first].toTensor();
  const at::Tensor b = function.inputs()[first + 1].toTensor();
  product_flops += 2 * a.numel() * b.size(-1);
  return nullptr;
}

}  // namespace

ProductFlops::ProductFlops()
    : callback_(at::addGlobalCallback(at::RecordFunctionCallback(&count_product)
                                          .needsInputs(true)
                                          .scopes({at::RecordScope::FUNCTION}))) {
  product_flops = 0;
}

ProductFlops::~ProductFlops() { at::removeCallback(callback_); }

int64_t ProductFlops::count() const { return product_flops; }

}  // namespace tessera::test
