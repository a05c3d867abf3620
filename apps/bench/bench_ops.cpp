#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>

#include "apps/bench/bench.hpp"
#include "apps/bench/op_case.hpp"
#include "apps/bench/timing.hpp"
#include "apps/common/app_options.hpp"
#include "apps/common/table.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

constexpr int64_t many_devices = 8;

struct OpsFlags {
  std::vector<std::string> ops;
  bool scale = true;
  bool check = false;
  std::string json;
};

/// Microseconds per call. `aten` is forward alone, negative if it cannot run alone.
struct Times {
  double aten = -1;
  double one = 0;
  double many = 0;

  bool has_bar() const { return aten >= 0; }
  /// Returns the time that a call on one device may take.
  double at_most() const { return 1.3 * aten + 2; }
  bool met() const { return one <= at_most(); }
};

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const OpInfo* info : op_registry()) list.emplace_back(info->name);
  return list;
}

/// Returns a call of forward on full inputs, without layouts, plans and blocks.
std::function<void()> aten_call(const OpCase& c, const std::vector<at::Tensor>& inputs) {
  std::vector<std::vector<Interval>> ranges, out_ranges;
  Specs specs;
  const auto full_range = [](const Shape& shape) {
    std::vector<Interval> range;
    for (int64_t extent : shape) range.push_back({0, extent});
    return range;
  };
  for (const at::Tensor& input : inputs) {
    specs.push_back({input.sizes().vec(), input.scalar_type()});
    ranges.push_back(full_range(specs.back().shape));
  }
  for (const Spec& out : c.info->infer(c.op.get(), specs)) {
    out_ranges.push_back(full_range(out.shape));
  }
  return [&c, &inputs, ranges, out_ranges, specs] {
    const c10::InferenceMode inference;
    c.info->forward(c.op.get(), LocalArgs(inputs, ranges, out_ranges, specs));
  };
}

bool is_empty(const OpCase& c) {
  return std::any_of(c.inputs.begin(), c.inputs.end(),
                     [](const SampleInput& input) { return numel(input.shape) == 0; });
}

Times time_case(const OpCase& c) {
  const std::vector<at::Tensor> inputs = make_inputs(c);
  const std::vector<DTensor> one = place_inputs(c, inputs, create_mesh({{"batch", 1}}));
  const std::vector<DTensor> many = place_inputs(c, inputs, create_mesh({{"batch", many_devices}}));
  std::vector<std::function<void()>> calls = {[&] { run_case(c, one); },
                                              [&] { run_case(c, many); }};
  // Not alone: windowed operations exchange halos first, and forward never gets empty blocks.
  const bool alone = !c.info->moves_blocks && !c.info->windowed && !is_empty(c);
  if (alone) calls.push_back(aten_call(c, inputs));
  const std::vector<double> seconds = seconds_per_call(calls);
  return {alone ? seconds[2] * 1e6 : -1, seconds[0] * 1e6, seconds[1] * 1e6};
}

Json row_json(const OpCase& c, const Times& times) {
  Json json{{"op", c.info->name}, {"inputs", shapes_text(c)}, {"scaled", c.scaled}};
  if (times.has_bar()) {
    json["aten_us"] = times.aten;
    json["at_most_us"] = times.at_most();
    json["met"] = times.met();
  }
  json["one_device_us"] = times.one;
  json["eight_devices_us"] = times.many;
  return json;
}

std::vector<std::string> row_cells(const OpCase& c, const Times& times) {
  return {std::string(c.info->name),
          shapes_text(c),
          times.has_bar() ? app::fixed(times.aten, 1) : "",
          app::fixed(times.one, 1),
          times.has_bar() ? app::fixed(times.one / times.aten, 2) : "",
          app::fixed(times.many, 1),
          app::fixed(times.many / times.one, 2),
          !times.has_bar() ? ""
          : times.met()    ? "met"
                           : "missed"};
}

/// Prints how many of the operations' cases meet the bar, and which miss it.
void print_verdict(size_t with_bar, const std::vector<std::string>& missed) {
  std::cout << "\nOne device takes at most 1.3 times ATen's time plus 2 us: met by "
            << with_bar - missed.size() << " of " << with_bar << ".\n";
  for (const std::string& text : missed) std::cout << "  missed: " << text << "\n";
}

/// Times the operations; returns whether all of them meet the bar.
bool run(const OpsFlags& flags) {
  Json rows = Json::array();
  app::Table table({"operation", "inputs", "ATen us", "1 device us", "1 to ATen", "8 devices us",
                    "8 to 1", "bar"},
                   2);
  std::vector<std::string> small, missed;
  size_t with_bar = 0;
  for (const OpInfo* info : op_registry()) {
    const std::string name(info->name);
    const auto selected = std::find(flags.ops.begin(), flags.ops.end(), name);
    if (!flags.ops.empty() && selected == flags.ops.end()) continue;
    for (const AnySample& sample : info->samples()) {
      const OpCase c = make_case(*info, sample, flags.scale);
      const Times times = time_case(c);
      rows.push_back(row_json(c, times));
      table.add(row_cells(c, times));
      with_bar += times.has_bar();
      if (times.has_bar() && !times.met()) missed.push_back(name + " " + shapes_text(c));
      if (flags.scale && !c.scaled) small.push_back(name + " " + shapes_text(c));
    }
  }
  std::cout << "Operations, microseconds per call, " << worker_count() << " threads. ATen: the "
            << "operation's forward alone, on full tensors.\n\n"
            << table.to_string();
  if (!small.empty()) {
    std::cout << "\nNot scaled, as attributes or empty inputs fix the extents:\n";
    for (const std::string& text : small) std::cout << "  " << text << "\n";
  }
  print_verdict(with_bar, missed);
  if (!flags.json.empty()) {
    write_file_atomically(flags.json,
                          to_json_text({{"threads", worker_count()}, {"ops", rows}}) + "\n");
  }
  return missed.empty();
}

}  // namespace

int bench_ops(int argc, const char* const* argv) {
  OpsFlags flags;
  app::AppOptions options =
      app::AppOptions::bare("bench ops", "Times every registered operation on its samples.");
  options.add({"op", "Operations", "operations to time; by default all",
               app::words(flags.ops, "NAME,...", names())});
  options.add({"scale", "Operations",
               "grow the samples to about 100,000 elements; without, they show the overhead of a "
               "call",
               app::toggle(flags.scale)});
  options.add({"check", "Operations",
               "exit with status 1 if an operation on one device takes more than 1.3 times ATen's "
               "time plus 2 us",
               app::toggle(flags.check)});
  options.add({"json", "Output", "file for the times", app::output_file(flags.json, "FILE.json")});
  if (!options.parse(argc, argv)) return 0;
  const bool met = run(flags);
  return flags.check && !met ? 1 : 0;
}

}  // namespace tessera::bench
