#pragma once

#include <string>

#include <tessera/framework/model/model.hpp>

namespace tessera {

/// Arguments of keras.utils.plot_model.
struct PlotModelOptions {
  bool show_shapes = true;    ///< whether to show the shapes of a layer's outputs
  bool show_layouts = true;   ///< whether to show the layouts of weights
  bool show_params = true;    ///< whether to show a layer's number of parameters
  bool expand_nested = true;  ///< whether a nested model is a frame around its layers, not one box
};

/// Returns a model's graph in the language DOT: its layers, with arrows from their inputs. Layers
/// of a subclassed model are drawn side by side, since its calls are unknown. Keras name:
/// keras.utils.model_to_dot.
std::string model_to_dot(Model& model, const PlotModelOptions& options = {});

/// Writes a model's graph to `path`, which must end in .dot, .svg or .png. Always writes the .dot
/// file; Graphviz renders it as a picture. If Graphviz is missing or fails, prints one warning on
/// stderr. Throws ConfigError for another extension, and FileError. Keras name:
/// keras.utils.plot_model.
void plot_model(Model& model, const std::string& path, const PlotModelOptions& options = {});

}  // namespace tessera
