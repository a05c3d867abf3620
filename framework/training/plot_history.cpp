#include <tessera/framework/training/plot_history.hpp>

#include <algorithm>
#include <cmath>
#include <span>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/drawing/axis_ticks.hpp>
#include <tessera/framework/drawing/svg.hpp>

namespace tessera {

using namespace detail;

namespace {

// In pixels: a panel with its margins, and the plot area inside it.
constexpr double panel_width = 460, panel_height = 308;
constexpr double plot_left = 66, plot_top = 56, plot_width = 370, plot_height = 200;
constexpr double page_margin = 16, headline_height = 56;
constexpr size_t max_markers = 40;

/// One line: values by epoch, counted from 1.
struct Series {
  bool validation = false;
  std::vector<int64_t> epochs;
  std::vector<double> values;
};

struct Panel {
  std::string name;
  std::vector<Series> series;
};

/// Style of a line. The two lines of a panel differ in shape and in colours that colour-blind
/// people can distinguish.
struct SeriesStyle {
  const char* label;
  const char* color;
  const char* dashes;
};
constexpr SeriesStyle training_style{"training", "#0072b2", ""};
constexpr SeriesStyle validation_style{"validation", "#d55e00", " stroke-dasharray=\"6 3\""};

bool is_drawable(double value) { return std::abs(value) <= 1e300; }

/// Returns the epochs, counted from 1, of a value that was reported `count` times.
std::vector<int64_t> epochs_of(const History& history, size_t count, int64_t validation_freq) {
  std::vector<int64_t> all;
  for (const int64_t epoch : history.epoch) all.push_back(epoch + 1);
  if (count == all.size()) return all;
  const auto max_freq = static_cast<int64_t>(all.size());
  for (int64_t freq = std::max<int64_t>(validation_freq, 2); freq <= max_freq; ++freq) {
    std::vector<int64_t> some;
    std::copy_if(all.begin(), all.end(), std::back_inserter(some),
                 [freq](int64_t epoch) { return epoch % freq == 0; });
    if (some.size() == count) return some;
  }
  // A value that was first reported in a later epoch, or a history made by hand.
  std::vector<int64_t> last;
  const int64_t end = all.empty() ? static_cast<int64_t>(count) : all.back();
  for (size_t i = 0; i < count; ++i) last.push_back(end - static_cast<int64_t>(count - 1 - i));
  return last;
}

std::vector<Panel> panels_of(const History& history, int64_t validation_freq) {
  std::vector<Panel> panels;
  for (const auto& [name, values] : history.history) {
    if (values.empty()) continue;
    const bool validation = name.starts_with("val_");
    const std::string base = validation ? name.substr(4) : name;
    auto panel =
        std::find_if(panels.begin(), panels.end(), [&](const Panel& p) { return p.name == base; });
    if (panel == panels.end()) panel = panels.insert(panel, {base, {}});
    panel->series.push_back(
        {validation, epochs_of(history, values.size(), validation_freq), values});
  }
  std::stable_partition(panels.begin(), panels.end(),
                        [](const Panel& panel) { return panel.name == "loss"; });
  return panels;
}

/// Maps epochs and values of one panel to positions in the picture.
struct Axes {
  Point origin;
  double first, last, lo, hi;

  double x(double epoch) const {
    // Points keep a distance from the sides; a single one is centred.
    const double fraction = last > first ? (epoch - first) / (last - first) : 0.5;
    return origin.x + 10 + fraction * (plot_width - 20);
  }
  double y(double value) const {
    return origin.y + plot_height * (1 - (value / 2 - lo / 2) / (hi / 2 - lo / 2));
  }
};

void draw_marker(Svg& svg, Point at, bool validation) {
  const std::string fill =
      std::string("fill=\"") + (validation ? validation_style : training_style).color + "\"";
  if (validation) {
    svg.rect({at.x - 3, at.y - 3}, 6, 6, fill);
  } else {
    svg.circle(at, 3.2, fill);
  }
}

std::string line_style(const SeriesStyle& style, bool dashed) {
  return str("stroke=\"", style.color, "\" stroke-width=\"2\" stroke-linejoin=\"round\"",
             dashed ? style.dashes : "");
}

void draw_series(Svg& svg, const Axes& axes, const Series& series) {
  const SeriesStyle& style = series.validation ? validation_style : training_style;
  const bool markers = series.values.size() <= max_markers;
  std::vector<Point> run;
  const auto end_run = [&] {
    if (run.size() > 1) svg.polyline(run, line_style(style, !markers));
    // A value between two that are not finite has no line, so it gets a marker.
    if (markers || run.size() == 1) {
      for (const Point& point : run) draw_marker(svg, point, series.validation);
    }
    run.clear();
  };
  for (size_t i = 0; i < series.values.size(); ++i) {
    const double x = axes.x(static_cast<double>(series.epochs[i]));
    if (is_drawable(series.values[i])) {
      run.push_back({x, axes.y(series.values[i])});
      continue;
    }
    end_run();
    const double y = axes.origin.y;
    svg.path(str("M", svg_number(x - 4), ' ', svg_number(y - 4), "l8 8m0 -8l-8 8"),
             line_style(style, false) + " fill=\"none\"");
  }
  end_run();
}

void draw_axes(Svg& svg, const Axes& axes, const Ticks& across, const Ticks& upwards) {
  const auto small = [](const char* anchor) {
    return str("font-size=\"11\" fill=\"", Svg::muted, "\" text-anchor=\"", anchor, '"');
  };
  const std::string grid = str("stroke=\"", Svg::grid, '"');
  const auto [left, top] = axes.origin;
  const double bottom = top + plot_height, right = left + plot_width;
  for (size_t i = 0; i < upwards.values.size(); ++i) {
    const double y = axes.y(upwards.values[i]);
    svg.line({left, y}, {right, y}, grid);
    svg.text({left - 8, y + 4}, upwards.labels[i], small("end"));
  }
  for (size_t i = 0; i < across.values.size(); ++i) {
    const double x = axes.x(across.values[i]);
    svg.line({x, top}, {x, bottom}, grid);
    svg.text({x, bottom + 17}, across.labels[i], small("middle"));
  }
  svg.rect(axes.origin, plot_width, plot_height, str("fill=\"none\" stroke=\"", Svg::frame, '"'));
  svg.text({left + plot_width / 2, bottom + 35}, "epoch", small("middle"));
}

void draw_legend(Svg& svg, Point at, const Panel& panel) {
  for (const Series& series : panel.series) {
    const SeriesStyle& style = series.validation ? validation_style : training_style;
    const bool markers = series.values.size() <= max_markers;
    svg.line({at.x, at.y - 4}, {at.x + 24, at.y - 4}, line_style(style, !markers));
    if (markers) draw_marker(svg, {at.x + 12, at.y - 4}, series.validation);
    const std::string text = str(style.label, ", last ", short_number(series.values.back()));
    svg.text({at.x + 31, at.y}, text, "");
    at.x += 31 + text_width(text, 12) + 18;
  }
}

/// Returns the first and the last epoch of all panels; they share one range.
std::pair<int64_t, int64_t> epoch_range(const std::vector<Panel>& panels) {
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (const Panel& panel : panels) {
    for (const Series& series : panel.series) {
      first = std::min(first, series.epochs.front());
      last = std::max(last, series.epochs.back());
    }
  }
  return {first, last};
}

void draw_panel(Svg& svg, Point corner, const Panel& panel, std::pair<int64_t, int64_t> epochs) {
  Axes axes{{corner.x + plot_left, corner.y + plot_top},
            static_cast<double>(epochs.first),
            static_cast<double>(epochs.second),
            INFINITY,
            -INFINITY};
  for (const Series& series : panel.series) {
    for (const double value : series.values) {
      if (!is_drawable(value)) continue;
      axes.lo = std::min(axes.lo, value);
      axes.hi = std::max(axes.hi, value);
    }
  }
  const bool any = axes.lo <= axes.hi;
  const Ticks upwards = any ? value_ticks(axes.lo, axes.hi, 5) : Ticks{};
  axes.lo = any ? upwards.values.front() : 0;
  axes.hi = any ? upwards.values.back() : 1;
  const Ticks across = integer_ticks(epochs.first, epochs.second, 8);
  svg.text({axes.origin.x, corner.y + 20}, fit_text(panel.name, 14, plot_width, true),
           "font-size=\"14\" font-weight=\"bold\"");
  draw_axes(svg, axes, across, upwards);
  for (const Series& series : panel.series) draw_series(svg, axes, series);
  draw_legend(svg, {axes.origin.x, corner.y + 42}, panel);
  if (!any) {
    svg.text({axes.origin.x + plot_width / 2, axes.origin.y + plot_height / 2}, "no finite value",
             str("text-anchor=\"middle\" fill=\"", Svg::muted, '"'));
  }
}

int columns_for(size_t panels) { return panels <= 1 ? 1 : panels <= 4 ? 2 : 3; }

void draw_headline(Svg& svg, const History& history, const std::string& title, bool own_title,
                   double width) {
  const size_t epochs = history.epoch.size();
  std::string below = str(epochs, epochs == 1 ? " epoch" : " epochs");
  if (own_title && !history.data.empty()) below = history.data + ", " + below;
  const double room = width - 2 * page_margin;
  svg.text({page_margin + 8, 32}, fit_text(title, 18, room, true),
           "font-size=\"18\" font-weight=\"bold\"");
  svg.text({page_margin + 8, 52}, fit_text(below, 12, room), str("fill=\"", Svg::muted, '"'));
}

}  // namespace

std::string detail::plot_svg(const History& history, const PlotOptions& options) {
  if (options.columns < 0 || options.validation_freq < 0) {
    throw ConfigError("plot", "columns and validation_freq must not be negative",
                      str(options.columns, " and ", options.validation_freq),
                      "pass 0 to have them chosen");
  }
  const std::vector<Panel> panels = panels_of(history, options.validation_freq);
  const auto columns =
      static_cast<size_t>(options.columns > 0 ? options.columns : columns_for(panels.size()));
  const size_t rows = (std::max<size_t>(panels.size(), 1) + columns - 1) / columns;
  const double width = 2 * page_margin + panel_width * static_cast<double>(columns);
  const double height = headline_height + page_margin + panel_height * static_cast<double>(rows);
  const std::string title = !options.title.empty() ? options.title
                            : history.data.empty() ? "Training"
                                                   : "Training on " + history.data;
  Svg svg(width, height, title);
  draw_headline(svg, history, title, !options.title.empty(), width);
  if (panels.empty()) {
    svg.text({width / 2, height / 2}, "no values yet",
             str("text-anchor=\"middle\" fill=\"", Svg::muted, '"'));
  }
  const auto epochs = epoch_range(panels);
  for (size_t i = 0; i < panels.size(); ++i) {
    const Point corner{page_margin + panel_width * static_cast<double>(i % columns),
                       headline_height + panel_height * static_cast<double>(i / columns)};
    draw_panel(svg, corner, panels[i], epochs);
  }
  return svg.document();
}

void save_plot(const History& history, const std::string& path, const PlotOptions& options) {
  write_file_atomically(path, plot_svg(history, options));
}

}  // namespace tessera
