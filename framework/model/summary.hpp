#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

class Model;

/// Arguments of keras.Model.summary.
struct SummaryOptions {
  /// Columns of the table. Absent: 88, or 108 with "Connected to", 12 more with `show_trainable`,
  /// 28 more with `show_layout`, but at most the terminal's less 4.
  std::optional<int64_t> line_length = std::nullopt;
  /// Where columns end, as parts of the line; the last is 1.
  std::vector<double> positions = {};
  bool expand_nested = false;   ///< whether the layers of models inside have rows too
  bool show_trainable = false;  ///< adds a column that tells which layers are trained
  /// Names, or RE2 expressions that match names' beginnings, of the first and the last layer.
  std::vector<std::string> layer_range = {};
  /// Adds how weights are cut over the mesh, and the bytes on each device.
  bool show_layout = false;
};

namespace detail {

/// What text is written to.
struct Terminal {
  int64_t columns = 80;
  bool color = false;
};
/// The standard output: its width ($COLUMNS, the terminal's, else 80), and whether it is a terminal
/// that knows colours ($TERM, $NO_COLOR).
Terminal standard_terminal();

/// The table of a model's layers, byte for byte as Keras 3 prints it. Throws ConfigError for
/// options that do not fit.
std::string summary_text(Model& model, const SummaryOptions& options, const Terminal& terminal);

}  // namespace detail

}  // namespace tessera
