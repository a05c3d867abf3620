#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/training/history.hpp>

namespace tessera {

/// The options of save_plot().
struct PlotOptions {
  /// Headline (default: "Training on DATA").
  std::string title = "";
  /// Panels in a row; 0: follows from the number of panels.
  int columns = 0;
  /// Epochs between validations, as in fit; 0: the smallest that fits the number of values.
  int64_t validation_freq = 0;
};

namespace detail {

/// Returns a history as an SVG picture: a panel for the loss, then one for every other value in
/// order of first appearance, each with its `val_` twin. A value that is not finite interrupts its
/// line and is marked by a cross on the upper edge. The headline names the data, and so says
/// whether they are synthetic. Throws ConfigError if an option is negative.
std::string plot_svg(const History& history, const PlotOptions& options = {});

}  // namespace detail

/// Writes plot_svg() to a file atomically. Throws FileError.
void save_plot(const History& history, const std::string& path, const PlotOptions& options = {});

}  // namespace tessera
