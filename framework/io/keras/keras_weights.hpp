#pragma once

#include <string>
#include <vector>

#include <tessera/framework/io/keras/keras_store.hpp>
#include <tessera/framework/io/keras/keras_values.hpp>
#include <tessera/framework/model/file_options.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Reads a model's weights from Keras' file, of today or earlier, which has the model's layers in
/// their order or, by_name, others too, and the variables of its optimizer; each process its own
/// part. What skip_mismatch leaves out is named in a warning. Collective. Throws FileError naming
/// the layer; then nothing is changed.
void take_weights(const Layer& model, const KerasStore& store, const LoadWeightsOptions& options);

/// What to do where a file's weights are not the model's.
inline constexpr const char* other_keras_model =
    "load a file of the same model, or pass skip_mismatch or by_name";

/// Tells, once, which layers of a file's weights were passed over; nothing if none were.
void warn_of_skipped(const Mesh& mesh, const std::string& path,
                     const std::vector<std::string>& skipped);

/// Where a layer's weights are looked for.
struct KerasPlace {
  std::string file;   ///< its path, for errors
  std::string group;  ///< "/layers/dense"
  std::string layer;  ///< the layer's name
};

/// Adds the matches of one layer's weights, or its name to `skipped` if they do not fit and that is
/// to be passed over. Throws FileError naming the layer and, if it is given, the nearest group.
void add_matches(const KerasPlace& place, const std::vector<Variable>& weights,
                 const std::vector<KerasData>& data, bool skip_mismatch,
                 std::vector<KerasMatch>& matches, std::vector<std::string>& skipped,
                 const std::string& nearest_group = "");

}  // namespace tessera::detail
