#include <tessera/framework/tensor/memory_use.hpp>

#include <cstddef>
#include <iterator>

namespace tessera {

namespace {

struct UseOfMemory {
  const char* name;
  double MemoryByUse::*bytes;
};

/// The uses, each at its index in MemoryUse.
constexpr UseOfMemory uses_in_order[] = {
    {"weights", &MemoryByUse::weights},
    {"slots", &MemoryByUse::slots},
    {"batch", &MemoryByUse::batch},
    {"casts", &MemoryByUse::casts},
    {"gathered", &MemoryByUse::gathered},
    {"gradients", &MemoryByUse::gradients},
    {"activations", &MemoryByUse::activations},
};
static_assert(std::size(uses_in_order) == memory_uses.size());

constexpr const UseOfMemory& in_order(MemoryUse use) {
  return uses_in_order[static_cast<size_t>(use)];
}

}  // namespace

const char* to_string(MemoryUse use) { return in_order(use).name; }
double& MemoryByUse::operator[](MemoryUse use) { return this->*in_order(use).bytes; }
double MemoryByUse::operator[](MemoryUse use) const { return this->*in_order(use).bytes; }

}  // namespace tessera
