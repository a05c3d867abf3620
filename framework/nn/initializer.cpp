#include <tessera/framework/nn/initializer.hpp>

#include <tessera/framework/nn/initializers.hpp>
#include <tessera/framework/nn/registry.hpp>

namespace tessera {

InitializerRef make_initializer(const std::string& name) {
  static const Factories<InitializerRef> factories = {
      {"constant", [] { return Constant(); }},
      {"glorot_normal", [] { return GlorotNormal(); }},
      {"glorot_uniform", [] { return GlorotUniform(); }},
      {"he_normal", [] { return HeNormal(); }},
      {"he_uniform", [] { return HeUniform(); }},
      {"identity", [] { return Identity(); }},
      {"lecun_normal", [] { return LecunNormal(); }},
      {"lecun_uniform", [] { return LecunUniform(); }},
      {"ones", [] { return Ones(); }},
      {"orthogonal", [] { return Orthogonal(); }},
      {"random_normal", [] { return RandomNormal(); }},
      {"random_uniform", [] { return RandomUniform(); }},
      {"truncated_normal", [] { return TruncatedNormal(); }},
      {"variance_scaling", [] { return VarianceScaling(); }},
      {"zeros", [] { return Zeros(); }},
  };
  return make_by_name("initializer", factories, name);
}

InitializerRef::InitializerRef(const std::string& name) : InitializerRef(make_initializer(name)) {}

}  // namespace tessera
