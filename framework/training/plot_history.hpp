#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/training/history.hpp>

namespace tessera {

/// How a History is drawn.
struct PlotOptions {
  /// Headline; "Training on DATA" if empty.
  std::string title = "";
  /// Panels beside each other; chosen by their number if 0.
  int columns = 0;
  /// Epochs between validations, fit's argument of this name. 0: the least with which the number
  /// of values is right.
  int64_t validation_freq = 0;
};

namespace detail {

/// The course of a training as an SVG picture: a panel for the loss, then one for every other value
/// in order of first appearance, each with its `val_` twin. A value that is not finite interrupts
/// its line, and a cross on the upper edge marks it. The headline names the data, and so says when
/// they are synthetic. Throws ConfigError if an option is negative.
std::string plot_svg(const History& history, const PlotOptions& options = {});

}  // namespace detail

/// Writes plot_svg() to a file in one step. Throws FileError.
void save_plot(const History& history, const std::string& path, const PlotOptions& options = {});

}  // namespace tessera
