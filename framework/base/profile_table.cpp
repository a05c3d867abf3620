#include <cinttypes>
#include <cstdio>

#include <algorithm>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/profile_lane.hpp>

namespace tessera {

using namespace detail;
namespace {

using Row = Profile::Row;
using Cells = std::vector<std::string>;

constexpr size_t text_columns = 2;
/// Column of the GPU times, present only with a GPU.
constexpr int gpu_column = 4;

std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string milliseconds(double seconds) { return fixed(seconds * 1e3, 3); }

std::string size_text(int64_t bytes) {
  if (bytes == 0) return "";
  const auto value = static_cast<double>(bytes);
  if (value < 1e3) return str(bytes, " B");
  if (value < 1e6) return fixed(value / 1e3, 1) + " kB";
  return fixed(value / 1e6, 1) + " MB";
}

bool is_helper_row(const Row& row) {
  return row.kind == SpanKind::aten || row.kind == SpanKind::parallel;
}

Cells cells_of(const Row& row, double all, bool gpu) {
  const double own = row.in_steps;
  Cells cells = {std::string(to_string(row.kind)),
                 row.name,
                 str(row.calls),
                 milliseconds(row.total),
                 milliseconds(row.aten),
                 milliseconds(row.overhead),
                 milliseconds(row.waiting),
                 own > 0 ? fixed(own / all * 100, 1) + " %" : "",
                 size_text(row.bytes)};
  if (gpu) cells.insert(cells.begin() + gpu_column, row.gpu > 0 ? milliseconds(row.gpu) : "");
  return cells;
}

std::string aligned(const std::vector<Cells>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const Cells& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  const auto add_line = [&](const Cells& cells) {
    std::string line;
    for (size_t c = 0; c < cells.size(); ++c) {
      const std::string space(widths[c] - cells[c].size(), ' ');
      line += (c ? "  " : "") + (c < text_columns ? cells[c] + space : space + cells[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line(rows[0]);
  Cells dashes;
  for (size_t width : widths) dashes.emplace_back(width, '-');
  add_line(dashes);
  for (size_t r = 1; r < rows.size(); ++r) add_line(rows[r]);
  return text;
}

std::string steps_line(const Profile::Totals& all) {
  if (all.steps == 0) return str("no steps in ", milliseconds(all.elapsed), " ms\n");
  const auto of_one = [&](double seconds) {
    return milliseconds(seconds / static_cast<double>(all.steps));
  };
  return str(all.steps, all.steps == 1 ? " step" : " steps", " of ", of_one(all.time), " ms: ATen ",
             of_one(all.aten), ", overhead ", of_one(all.overhead), ", waiting ",
             of_one(all.waiting),
             all.gpu > 0 ? str("; on the GPU ", of_one(all.gpu)) : std::string(),
             "\noutside of steps: ", milliseconds(all.elapsed - all.time), " ms of ",
             milliseconds(all.elapsed), "\n");
}

}  // namespace

std::string_view to_string(SpanKind kind) {
  switch (kind) {
    case SpanKind::step:
      return "step";
    case SpanKind::op:
      return "op";
    case SpanKind::aten:
      return "aten";
    case SpanKind::parallel:
      return "parallel";
    case SpanKind::collective:
      return "collective";
    case SpanKind::wait:
      return "wait";
    case SpanKind::optimizer:
      return "optimizer";
    case SpanKind::metrics:
      return "metrics";
    case SpanKind::data:
      return "data";
    case SpanKind::callback:
      return "callback";
  }
  return "?";
}

std::string Profile::table() const {
  const std::vector<Row> all_rows = rows();
  const Totals all = totals();
  std::vector<Cells> lines = {{"kind", "name", "calls", "total ms", "ATen ms", "overhead ms",
                               "waiting ms", "share", "bytes"}};
  const bool gpu =
      std::any_of(all_rows.begin(), all_rows.end(), [](const Row& row) { return row.gpu > 0; });
  if (gpu) lines[0].insert(lines[0].begin() + gpu_column, "GPU ms");
  double helper_time = 0;
  for (const Row& row : all_rows) {
    if (is_helper_row(row)) {
      helper_time += row.aten;
    } else {
      lines.push_back(cells_of(row, all.time, gpu));
    }
  }
  std::string text = aligned(lines) + "\n" + steps_line(all);
  if (helper_time > 0) text += str("ATen on helping threads: ", milliseconds(helper_time), " ms\n");
  if (all.left_out > 0) {
    text += str("the profile was full: it lacks the last ", all.left_out, " spans\n");
  }
  return text;
}

}  // namespace tessera
