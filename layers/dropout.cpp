#include <tessera/layers/dropout.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/random.hpp>

namespace tessera {

DropoutLayer::DropoutLayer(double rate, const DropoutOptions& options)
    : Layer({options.name, options.dtype, options.trainable}), rate_(rate), seed_(options.seed) {
  if (!(rate >= 0 && rate < 1)) {
    throw ConfigError("Dropout " + options.name, "rate lies in [0, 1)", str(rate),
                      "give the share of elements to drop");
  }
}

Json DropoutLayer::config() const {
  Json json = Layer::config();
  json["rate"] = rate_;
  json["seed"] = seed_ ? Json(*seed_) : Json(nullptr);
  return json;
}

DTensor DropoutLayer::call(const Inputs& inputs, const CallContext& context) {
  if (!context.training || rate_ == 0) return inputs[0];
  Seed seed = context.random ? context.random->next(path()) : Seed{};
  if (seed_) seed = fold_in(seed, static_cast<uint64_t>(*seed_));
  at::Tensor pair = at::tensor({seed.a, seed.b}, at::kLong);
  const DTensor input = pack(std::move(pair), Layout::replicated(inputs[0].mesh(), 1));
  return ops::dropout(inputs[0], rate_, input);
}

}  // namespace tessera
