#pragma once

#include <string>
#include <vector>

#include <tessera/framework/io/keras/keras_store.hpp>
#include <tessera/framework/io/keras/keras_values.hpp>
#include <tessera/framework/model/file_options.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Reads a model's weights and its optimizer's variables from Keras' file, of the current or an
/// earlier format, after their checksums were verified; each process reads only its own blocks. The
/// file has the model's layers in their order or, with by_name, in any order and with others.
/// Layers left out by skip_mismatch are named in a warning. Collective. Throws FileError naming the
/// layer; then nothing is changed.
void load_keras_weights(const Layer& model, const KerasStore& store,
                        const LoadWeightsOptions& options);

/// The advice in errors if a file's weights do not fit the model.
inline constexpr const char* other_keras_model =
    "load a file of the same model, or pass skip_mismatch or by_name";

/// Warns once of the layers whose weights were skipped, if any.
void warn_of_skipped(const Mesh& mesh, const std::string& path,
                     const std::vector<std::string>& skipped);

/// The group in which a layer's weights are looked for.
struct KerasSource {
  std::string file;   ///< path of the file, for errors
  std::string group;  ///< "/layers/dense"
  std::string layer;  ///< the layer's name
};

/// Adds the matches of one layer's weights, or adds its name to `skipped` if they do not fit and
/// `skip_mismatch` is set. Throws FileError naming the layer and, if not empty, the nearest group.
void add_matches(const KerasSource& source, const std::vector<Variable>& weights,
                 const std::vector<KerasData>& data, bool skip_mismatch,
                 std::vector<KerasMatch>& matches, std::vector<std::string>& skipped,
                 const std::string& nearest_group = "");

}  // namespace tessera::detail
