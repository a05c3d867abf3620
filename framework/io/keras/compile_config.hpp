#pragma once

#include <string>

#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/model/model.hpp>

namespace tessera::detail {

/// "compile_config" as Keras writes it; null for a model that is not compiled with an optimizer. So
/// it is, with a warning that names `where`, for one that a configuration cannot say, such as by
/// losses or metrics of a program's own.
Json compile_config(const Model& model, const std::string& where);

/// Compiles a model as "compile_config" says; undefined layouts: on the default mesh. Keras'
/// steps_per_execution and jit_compile, which change no figures, are passed over. Throws
/// ConfigError naming the place.
void compile_from_config(const ModelHandle& model, const Json& config, const JsonPath& path,
                         const LayoutMap& layouts);

}  // namespace tessera::detail
