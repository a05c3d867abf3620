#include <algorithm>
#include <cstdio>
#include <iterator>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/drawing/styled_table.hpp>
#include <tessera/framework/training/internal/plan_peak.hpp>
#include <tessera/framework/training/step_plan.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Returns a number with three digits: "2.5 T".
std::string readable_count(double count) {
  constexpr const char* units[] = {"", " k", " M", " G", " T", " P", " E"};
  size_t unit = 0;
  for (; count >= 999.5 && unit + 1 < std::size(units); ++unit) count /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, "%.3g%s", count, units[unit]);
  return text;
}

/// Returns one number if all devices are equal, otherwise the range.
std::string range(const std::vector<double>& bytes) {
  const auto [low, high] = std::minmax_element(bytes.begin(), bytes.end());
  if (*low == *high) return readable_bytes(*high);
  return readable_bytes(*low) + " to " + readable_bytes(*high);
}

/// A column of a plan's table of layers.
struct Column {
  const char* title;
  const char* key;
  std::vector<double> StepPlan::Row::*bytes;
};

constexpr Column columns_of_plan[] = {
    {"Weights", "weights", &StepPlan::Row::weights},
    {"Casts", "casts", &StepPlan::Row::casts},
    {"Gathered", "gathered", &StepPlan::Row::gathered},
    {"Gradients", "gradients", &StepPlan::Row::gradients},
    {"Slots", "slots", &StepPlan::Row::slots},
    {"Activations", "activations", &StepPlan::Row::activations},
};

/// Returns the columns to print. A plan of stages leaves out what it does not know: 0 B would say
/// that it takes no memory.
std::vector<Column> printed_columns(const StepPlan& plan) {
  std::vector<Column> printed(std::begin(columns_of_plan), std::end(columns_of_plan));
  if (plan.pipeline.empty()) return printed;
  std::erase_if(printed, [&](const Column& column) {
    return std::all_of(plan.layers.begin(), plan.layers.end(), [&](const StepPlan::Row& layer) {
      const std::vector<double>& bytes = layer.*column.bytes;
      return std::all_of(bytes.begin(), bytes.end(), [](double one) { return one == 0; });
    });
  });
  return printed;
}

std::string layers_table(const StepPlan& plan) {
  const std::vector<Column> printed = printed_columns(plan);
  std::vector<std::vector<std::string>> rows;
  StepPlan::Row total;
  const auto add = [](std::vector<double>& sum, const std::vector<double>& bytes) {
    sum.resize(bytes.size());
    for (size_t i = 0; i < bytes.size(); ++i) sum[i] += bytes[i];
  };
  for (const StepPlan::Row& layer : plan.layers) {
    const std::string name = layer.type.empty() ? layer.path : layer.path + " (" + layer.type + ")";
    rows.push_back({name});
    for (const Column& column : printed) {
      rows.back().push_back(range(layer.*column.bytes));
      add(total.*column.bytes, layer.*column.bytes);
    }
  }
  rows.push_back({"total"});
  std::vector<TableColumn> columns = {{"Layer (type)"}};
  for (const Column& column : printed) {
    rows.back().push_back(range(total.*column.bytes));
    columns.push_back({column.title, 1});
  }
  return draw_text_table(columns, rows);
}

/// Joins consecutive collectives of the same kind and place into one row with a count.
std::string collectives_table(const StepPlan& plan) {
  std::vector<std::vector<std::string>> rows;
  double received = 0;
  for (size_t i = 0; i < plan.collectives.size();) {
    const CommEntry& entry = plan.collectives[i];
    size_t next = i;
    double bytes = 0;
    const auto joins = [&](const CommEntry& other) {
      return other.op == entry.op && other.dims == entry.dims && other.place == entry.place;
    };
    for (; next < plan.collectives.size() && joins(plan.collectives[next]); ++next) {
      bytes += plan.collectives[next].received;
    }
    received += bytes;
    rows.push_back({entry.place.empty() ? "loss" : entry.place, to_string(entry.op), entry.dims,
                    std::to_string(next - i), readable_bytes(bytes)});
    i = next;
  }
  rows.push_back(
      {"total", "", "", std::to_string(plan.collectives.size()), readable_bytes(received)});
  return draw_text_table({{"For"}, {"Collective"}, {"Over"}, {"Times", 1}, {"Received", 1}}, rows);
}

}  // namespace

double StepPlan::bytes(int64_t device) const {
  const auto at = static_cast<size_t>(device);
  double sum = 0;
  for (const StepPlan::Row& layer : layers) {
    for (const Column& column : columns_of_plan) sum += (layer.*column.bytes)[at];
  }
  return sum;
}

std::string StepPlan::to_string() const {
  std::vector<double> all;
  for (int64_t device = 0; device < mesh.size(); ++device) all.push_back(bytes(device));
  const std::string head = str("A training step on mesh ", mesh.describe(),
                               ", bytes of each device: ", range(all), "\n", layers_table(*this));
  if (!pipeline.empty()) {
    return str(head, "Floating-point operations: ", readable_count(flops), "\n", pipeline);
  }
  return str(
      head, "Peak: ", peak_text(*this), "\nFloating-point operations: ", readable_count(flops),
      "\nCollectives of a step, bytes that each device receives:\n", collectives_table(*this));
}

Json StepPlan::to_json() const {
  Json json = Json::object();
  json["mesh"] = tessera::to_string(mesh.dims());
  json["layers"] = Json::array();
  for (const StepPlan::Row& layer : layers) {
    json["layers"].push_back({{"path", layer.path}, {"type", layer.type}});
    for (const Column& column : columns_of_plan) {
      json["layers"].back()[column.key] = layer.*column.bytes;
    }
  }
  json["peaks"] = Json::array();
  for (const Peak& peak : peaks) {
    json["peaks"].push_back({{"place", peak.place}, {"total", peak.total()}});
    for (MemoryUse use : memory_uses) {
      json["peaks"].back()[tessera::to_string(use)] = peak[use];
    }
  }
  json["flops"] = flops;
  json["collectives"] = Json::array();
  for (const CommEntry& entry : collectives) {
    json["collectives"].push_back({{"for", entry.place},
                                   {"op", tessera::to_string(entry.op)},
                                   {"dims", entry.dims},
                                   {"members", entry.members},
                                   {"bytes", entry.bytes},
                                   {"received", entry.received}});
  }
  return json;
}

}  // namespace tessera
