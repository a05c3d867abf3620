#include <tessera/layers/activation/activation.hpp>

#include <tessera/framework/ops/activation.hpp>
#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(ELUOptions& o, const Visit& visit) {
  visit("alpha", o.alpha);
}

namespace {

class ELULayer final : public Layer {
 public:
  explicit ELULayer(const ELUOptions& options)
      : Layer(common_options(options)), options_(options) {}
  std::string class_name() const override { return "ELU"; }
  Json config() const override { return layer_config(*this, options_); }
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }
  bool supports_masking() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return ops::elu(inputs[0], options_.alpha);
  }

 private:
  ELUOptions options_;
};

const RegisteredLayer registered_elu("ELU", [](JsonObject& config) {
  return ELU(layer_options_from<ELUOptions>(config));
});

}  // namespace

ELU::ELU(const ELUOptions& options) : LayerHandle(std::make_shared<ELULayer>(options)) {}

}  // namespace tessera
