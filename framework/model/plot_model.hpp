#pragma once

#include <string>

#include <tessera/framework/model/model.hpp>

namespace tessera {

/// Arguments of keras.utils.plot_model.
struct PlotModelOptions {
  bool show_shapes = true;    ///< the shapes of a layer's outputs
  bool show_layouts = true;   ///< how weights are cut over the mesh
  bool show_params = true;    ///< how many parameters a layer has
  bool expand_nested = true;  ///< a nested model is a frame around its layers, not one box
};

/// The graph of a model in the language DOT: its layers and what each is called on. Layers of a
/// subclassed model stand side by side, since its calls are not known. Keras name:
/// keras.utils.model_to_dot.
std::string model_to_dot(Model& model, const PlotModelOptions& options = {});

/// Writes the graph of a model to `path`, which ends in .dot, .svg or .png. The .dot is written in
/// any case; a picture is drawn of it by Graphviz, and where that is not installed or fails, one
/// warning on stderr says so. Throws ConfigError for another ending, and FileError. Keras name:
/// keras.utils.plot_model.
void plot_model(Model& model, const std::string& path, const PlotModelOptions& options = {});

}  // namespace tessera
