#pragma once

#include <string>

#include <tessera/framework/model/graph_plot.hpp>
#include <tessera/framework/model/model.hpp>

namespace tessera {

/// Arguments of keras.utils.plot_model.
struct PlotModelOptions {
  bool show_shapes = true;
  bool show_layouts = true;  ///< how weights are cut over the mesh
  bool show_params = true;
  bool expand_nested = true;
};

/// A model's layers and what each is called on. Layers of a subclassed model stand side by side:
/// its calls are not known.
Graph model_graph(Model& model, const PlotModelOptions& options);

/// Writes the picture of a model's graph as an SVG file, in one step (keras.utils.plot_model).
/// Throws FileError.
void plot_model(Model& model, const std::string& path, const PlotModelOptions& options = {});

}  // namespace tessera
