#include <tessera/layers/core/wrapper.hpp>

#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/core/dense.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/layer_check.hpp"

namespace wrapper_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

class Doubled final : public Wrapper {
 public:
  using Wrapper::Wrapper;
  std::string class_name() const override { return "Doubled"; }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    return wrapped()(inputs, context) * 2;
  }
};

[[maybe_unused]] const bool registered = [] {
  register_layer("Doubled", [](JsonObject& config) {
    const LayerOptions options = take_layer_options(config);
    return make_layer<Doubled>(Wrapper::layer_from(config), options);
  });
  return true;
}();

}  // namespace

TEST_CASE("a Wrapper computes with the layer that it wraps, under every layout") {
  test::run_golden_layer_test(
      {.make = [] { return make_layer<Doubled>(Dense(3, {.name = "inner"})); },
       .input = {{4, 5}},
       .output = {4, 3},
       .weights = {{"inner/kernel", {5, 3}}, {"inner/bias", {3}}}});
}

TEST_CASE("a Wrapper's configuration holds the layer, as Keras writes it") {
  const Json config = make_layer<Doubled>(Dense(3), LayerOptions{.name = "twice"})->config();
  CHECK(config.at("name") == "twice");
  CHECK(config.at("layer").at("module") == "keras.layers");
  CHECK(config.at("layer").at("class_name") == "Dense");
  CHECK(config.at("layer").at("config").at("units") == 3);
}

}  // namespace wrapper_test
