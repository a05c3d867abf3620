#include <tessera/framework/nn/seed_generator.hpp>

#include <tessera/framework/base/random.hpp>
#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera {

using namespace detail;

namespace {

/// The path of the generators' draws among those of a step's layers.
constexpr const char* path = "seed_generator";

}  // namespace

DTensor SeedGenerator::next() {
  const CallContext& context = call_context();
  if (context.random) return context.random->next_input(path, default_mesh(), seed_);
  stop_tracing("a SeedGenerator drew outside of a training step");
  const Seed stream = fold_in({seed_.value_or(global_seed()), 0}, stable_hash(path));
  return ops::seed_input(fold_in(stream, static_cast<uint64_t>(draws_++)), default_mesh());
}

}  // namespace tessera
