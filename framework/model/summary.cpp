#include <tessera/framework/model/summary.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include <re2/re2.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/internal/terminal.hpp>
#include <tessera/framework/drawing/styled_table.hpp>
#include <tessera/framework/model/functional.hpp>
#include <tessera/framework/model/internal/summary_rows.hpp>
#include <tessera/framework/optimizer/internal/stored_slots.hpp>
#include <tessera/framework/tensor/float32_precision.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/training/internal/plan_peak.hpp>

namespace tessera {

using namespace detail;

namespace {

struct Total {
  int64_t count = 0;
  double bytes = 0;
};

Total total_of(const std::vector<Variable>& weights) {
  Total total;
  for (const Variable& weight : weights) {
    const int64_t count = numel(weight.shape());
    total.count += count;
    total.bytes +=
        static_cast<double>(count) * static_cast<double>(c10::elementSize(weight.dtype()));
  }
  return total;
}

std::string total_line(const char* title, const Total& total, bool color) {
  return StyledText(str(" ", title, " params: "), TextStyle::bold).to_string(color) +
         StyledText(with_commas(total.count), TextStyle::number).to_string(color) +
         str(" (", readable_bytes(total.bytes), ")\n");
}

/// Sums the optimizer's variables; like Keras, with the step (8 bytes) and a learning rate that is
/// not a schedule (4 bytes).
Total optimizer_total(const Optimizer& optimizer) {
  Total total = total_of(optimizer.variables());
  total.count += 1;
  total.bytes += 8;
  if (!optimizer.config().at("learning_rate").is_object()) {
    total.count += 1;
    total.bytes += 4;
  }
  return total;
}

double bytes_per_device(const std::vector<Variable>& variables) {
  double bytes = 0;
  for (const Variable& variable : variables) {
    bytes += shard_bytes(variable.shape(), variable.dtype(), variable.layout());
  }
  return bytes;
}

/// Returns the line on bytes and mesh; empty for a model without weights, which is on no mesh.
std::string device_line(const Model& model, const Optimizer* optimizer, bool color) {
  const std::vector<Variable> all = model.weights();
  if (all.empty()) return "";
  const double weights = bytes_per_device(all);
  std::vector<Variable> held = optimizer ? optimizer->variables() : std::vector<Variable>();
  std::erase_if(held, StoredSlots::rests);
  const double slots = bytes_per_device(held);
  const Mesh& mesh = all[0].layout().mesh();
  const std::string precision =
      on_gpus(mesh)
          ? str(StyledText(" float32 matmul precision: ", TextStyle::bold).to_string(color),
                float32_matmul_precision(), "\n")
          : "";
  return StyledText(" Bytes per device: ", TextStyle::bold).to_string(color) +
         StyledText(readable_bytes(weights + slots), TextStyle::number).to_string(color) +
         str(" (weights ", readable_bytes(weights), ", optimizer ", readable_bytes(slots), ")\n") +
         StyledText(" Mesh: ", TextStyle::bold).to_string(color) + describe_mesh(mesh) + "\n" +
         precision;
}

std::vector<double> positions_of(const SummaryOptions& options, bool connections) {
  std::vector<double> ends = options.positions;
  const size_t columns = connections ? 4 : 3;
  if (ends.empty()) {
    ends = connections ? std::vector<double>{0.3, 0.56, 0.74, 1.0}
                       : std::vector<double>{0.45, 0.80, 1.0};
  }
  const bool rising = std::is_sorted(ends.begin(), ends.end());
  if (ends.size() != columns || !rising || ends[0] <= 0 || ends.back() != 1) {
    throw ConfigError("summary", str("positions must be ", columns, " ascending numbers up to 1"),
                      str(ends.size(), " numbers"), "leave them out");
  }
  const auto append = [&](double share) {
    for (double& end : ends) end *= share;
    ends.push_back(1.0);
  };
  if (options.show_trainable) append(0.90);
  if (options.show_layout) append(0.75);
  return ends;
}

std::vector<TableColumn> columns_of(const SummaryOptions& options, bool connections,
                                    const Terminal& terminal) {
  std::vector<TableColumn> columns = {{"Layer (type)"}, {"Output Shape"}, {"Param #", 1}};
  int64_t length = 88;
  if (connections) {
    columns.push_back({"Connected to"});
    length = 108;
  }
  if (options.show_trainable) {
    columns.push_back({"Trainable", 0});
    length += 12;
  }
  if (options.show_layout) {
    columns.push_back({"Layout"});
    length += 28;
  }
  length = options.line_length.value_or(std::min(length, terminal.columns - 4));
  const std::vector<double> ends = positions_of(options, connections);
  int64_t end = 0;
  // Blanks (two per column) and frame are subtracted evenly from the columns, rounded to even.
  auto excess = static_cast<int64_t>(3 * columns.size() + 1);
  for (size_t i = 0; i < columns.size(); ++i) {
    const double share = static_cast<double>(excess) / static_cast<double>(columns.size() - i);
    const auto taken = static_cast<int64_t>(std::nearbyint(share));
    const auto next = static_cast<int64_t>(ends[i] * static_cast<double>(length));
    columns[i].width = next - end - taken;
    end = next;
    excess -= taken;
    if (columns[i].width >= 4) continue;
    throw ConfigError("summary", "every column must be at least 4 wide",
                      str("line_length ", length, ", ", columns[i].title, " ", columns[i].width),
                      "pass a greater line_length");
  }
  return columns;
}

/// Returns the layers in layer_range.
std::vector<std::shared_ptr<Layer>> layers_in_range(
    const std::vector<std::shared_ptr<Layer>>& layers, const std::vector<std::string>& range) {
  if (range.empty()) return layers;
  std::vector<size_t> first, last;
  if (range.size() == 2) {
    const re2::RE2 from(range[0], re2::RE2::Quiet), to(range[1], re2::RE2::Quiet);
    for (size_t i = 0; i < layers.size(); ++i) {
      const auto begins = [&](const re2::RE2& expression) {
        const std::string& name = layers[i]->name();
        return expression.Match(name, 0, name.size(), re2::RE2::ANCHOR_START, nullptr, 0);
      };
      if (from.ok() && begins(from)) first.push_back(i);
      if (to.ok() && begins(to)) last.push_back(i);
    }
  }
  if (first.empty() || last.empty()) {
    std::vector<std::string> names;
    for (const auto& layer : layers) names.push_back(layer->name());
    throw ConfigError("summary", "layer_range must hold two expressions that match layers",
                      quoted_list(range), "choose among " + quoted_list(names));
  }
  size_t begin = first.front(), end = last.back() + 1;
  if (first.front() > last.back()) {
    begin = last.front();
    end = first.back() + 1;
  }
  return {layers.begin() + static_cast<std::ptrdiff_t>(begin),
          layers.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace

Terminal detail::standard_terminal() {
  Terminal terminal;
  const char* columns = std::getenv("COLUMNS");
  const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  winsize size{};
  if (columns && std::atoi(columns) > 0) {
    terminal.columns = std::atoi(columns);
  } else if (is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.columns = size.ws_col;
  }
  terminal.color = shows_colors(STDOUT_FILENO);
  return terminal;
}

std::string detail::summary_text(Model& model, const SummaryOptions& options,
                                 const Terminal& terminal) {
  model.name_layers();
  const auto* graph = dynamic_cast<const FunctionalModel*>(&model);
  const bool connections = graph && !is_chain(*graph);
  const std::vector<TableColumn> columns = columns_of(options, connections, terminal);
  std::vector<std::vector<StyledText>> rows;
  const SummaryRows source(model, options, connections ? graph : nullptr);
  for (const auto& layer : layers_in_range(model.sublayers(), options.layer_range)) {
    source.add(*layer, 0, rows);
  }
  const OptimizerHandle optimizer = model.compiled() ? model.optimizer() : OptimizerHandle();
  const bool trained = optimizer && optimizer->built();
  const Total trainable = total_of(model.trainable_weights());
  const Total all = total_of(model.weights());
  const Total slots = trained ? optimizer_total(*optimizer) : Total();
  const bool color = terminal.color;
  const std::string name = model.name().empty() ? snake_case(model.class_name()) : model.name();
  std::string text = StyledText(str("Model: \"", name, "\""), TextStyle::bold).to_string(color);
  text += "\n" + draw_table(columns, rows, color);
  text += total_line("Total", {all.count + slots.count, all.bytes + slots.bytes}, color);
  text += total_line("Trainable", trainable, color);
  text += total_line("Non-trainable", {all.count - trainable.count, all.bytes - trainable.bytes},
                     color);
  if (trained) text += total_line("Optimizer", slots, color);
  if (options.show_layout) text += device_line(model, trained ? &*optimizer : nullptr, color);
  if (options.plan) {
    text += StyledText(" Peak of a training step: ", TextStyle::bold).to_string(color) +
            peak_text(*options.plan) + "\n";
  }
  return text;
}

void Model::summary(const SummaryOptions& options) {
  std::cout << summary_text(*this, options, standard_terminal()) << std::flush;
}

}  // namespace tessera
