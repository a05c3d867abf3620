#include <tessera/framework/nn/key_value_cache.hpp>

#include <tessera/framework/ops/shape.hpp>

namespace tessera {

int64_t KeyValueCache::first_step(const Layer& layer, int64_t steps) {
  int64_t& seen = steps_[&layer];
  const int64_t first = seen;
  seen += steps;
  return first;
}

DTensor KeyValueCache::extended(const Layer& layer, const std::string& name, const DTensor& value) {
  DTensor& all = values_[{&layer, name}];
  all = all.defined() ? ops::concat({all, value}, 1) : value;
  return all;
}

}  // namespace tessera
