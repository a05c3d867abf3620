#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/training/step_plan.hpp>

namespace tessera {

class Model;

/// Arguments of keras.Model.summary.
struct SummaryOptions {
  /// Width of the table (default: 88, or 108 with "Connected to", plus 12 with `show_trainable` and
  /// 28 with `show_layout`, but at most the terminal's width minus 4).
  std::optional<int64_t> line_length = std::nullopt;
  /// Ends of the columns as fractions of the line; the last is 1.
  std::vector<double> positions = {};
  bool expand_nested = false;   ///< whether layers of nested models have rows too
  bool show_trainable = false;  ///< whether to add a column that shows which layers are trainable
  /// Names of the first and the last layer, or RE2 expressions that match prefixes of names.
  std::vector<std::string> layer_range = {};
  /// Whether to add the layouts of weights and the bytes per device.
  bool show_layout = false;
  /// A plan of the model's training step (Model::plan()): adds what a device holds at most.
  std::optional<StepPlan> plan = std::nullopt;
};

namespace detail {

/// Properties of the terminal that text is written to.
struct Terminal {
  int64_t columns = 80;
  bool color = false;
};
/// Returns the properties of standard output: its width ($COLUMNS, else the terminal's, else 80),
/// and whether it is a terminal with colours ($TERM, $NO_COLOR).
Terminal standard_terminal();

/// Returns the table of a model's layers, byte for byte as Keras 3 prints it. Throws ConfigError
/// for invalid options.
std::string summary_text(Model& model, const SummaryOptions& options, const Terminal& terminal);

}  // namespace detail

}  // namespace tessera
