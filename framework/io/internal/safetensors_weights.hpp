#pragma once

#include <string>

#include <tessera/framework/model/file_options.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Reads a model's weights from a safetensors file or an index of several, each process only its
/// own blocks; the first process verifies the checksums that Tessera wrote. Collective. Throws
/// ConfigError for invalid options, FileError naming the file and the tensors; then nothing is
/// changed.
void load_safetensors_weights(const Layer& model, const std::string& path,
                              const LoadWeightsOptions& options);

}  // namespace tessera::detail
