#include <tessera/framework/nn/internal/random_stream.hpp>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera {

using namespace detail;

namespace {

int64_t& seed() {
  static int64_t value = 0;
  return value;
}

}  // namespace

int64_t detail::global_seed() { return seed(); }
void set_random_seed(int64_t value) { seed() = value; }

/// Returns the seed of the layer's next call, before the step is folded in.
Seed RandomStream::stream(const std::string& path) {
  const int64_t call = calls_[path]++;
  const Seed stream = fold_in({seed_, 0}, stable_hash(path));
  return fold_in(stream, static_cast<uint64_t>(call));
}

Seed RandomStream::next(const std::string& path) {
  stop_tracing("a layer took a seed with next() instead of next_input()");
  return fold_in(stream(path), static_cast<uint64_t>(step_));
}

DTensor RandomStream::next_input(const std::string& path, const Mesh& mesh,
                                 std::optional<int64_t> fold) {
  const auto host = [stream = stream(path), fold](int64_t step) {
    Seed seed = fold_in(stream, static_cast<uint64_t>(step));
    if (fold) seed = fold_in(seed, static_cast<uint64_t>(*fold));
    return ops::seed_tensor(seed);
  };
  const TracerScope untraced(nullptr);
  const DTensor seed_input = host_input(host(step_), mesh);
  if (OpListener* const listener = untraced.previous()) {
    if (seed_ != global_seed())
      listener->stop("numbers were drawn with another seed than the global one");
    listener->input(seed_input, step_, host);
  }
  return seed_input;
}

}  // namespace tessera
