#pragma once

#include <string>

#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/model/model.hpp>

namespace tessera::detail {

/// Returns the model's "compile_config" as Keras writes it; null for a model that is not compiled
/// with an optimizer, and, with a warning that names `where`, for one that a configuration cannot
/// express, for example with custom losses or metrics.
Json compile_config(const Model& model, const std::string& where);

/// Returns the options of a "compile_config", or of arguments of Keras' compile() as JSON. Throws
/// ConfigError naming the position.
CompileOptions compile_options_from_config(const Json& config, const JsonPath& path);

/// Compiles a model according to "compile_config", also as Keras 2 wrote it; undefined layouts: on
/// the default mesh. Ignores Keras' steps_per_execution and jit_compile, which do not affect
/// results. Throws ConfigError naming the position, and how to load the model without it.
void compile_from_config(const ModelHandle& model, const Json& config, const JsonPath& path,
                         const LayoutMap& layouts);

}  // namespace tessera::detail
