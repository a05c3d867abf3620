#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include <ATen/Parallel.h>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/tessera.hpp>

#include "apps/bench/bench.hpp"
#include "apps/bench/timing.hpp"
#include "apps/common/app_options.hpp"
#include "apps/common/table.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

constexpr int64_t batch_size = 64, rows = 4096, pixels = 64;

struct DataFlags {
  int64_t rounds = 5;
  std::string json;
};

/// An augmentation that flips pictures and blurs them `times` times.
struct Blur {
  int64_t times = 8;

  Examples operator()(Examples element) const {
    at::Tensor x = element.x[0].flip(-1);
    for (int64_t i = 0; i < times; ++i) x = (x + x.roll(1, -1) + x.roll(1, -2)) / 3;
    element.x[0] = x;
    return element;
  }
};

DataPipeline pictures(int64_t count) {
  return DataPipeline(at::rand({count, pixels, pixels}), at::randint(10, {count}));
}

void read_epoch(const DataPipeline& data) {
  BatchLoader loader(data, {});
  while (loader.next()) {
  }
}

/// Returns the median seconds of an epoch for each number of threads, measured in turns.
std::vector<double> epoch_seconds(const std::vector<int64_t>& threads, int64_t rounds) {
  std::vector<std::vector<double>> times(threads.size());
  const DataPipeline data = pictures(rows);
  for (int64_t round = 0; round <= rounds; ++round) {
    for (size_t i = 0; i < threads.size(); ++i) {
      const DataPipeline epoch = data.map(Blur(), {.threads = threads[i]}).batch(batch_size);
      const double seconds = seconds_of([&] { read_epoch(epoch); });
      // The first round warms up.
      if (round > 0) times[i].push_back(seconds);
    }
  }
  std::vector<double> medians;
  for (const auto& each : times) medians.push_back(median(each));
  return medians;
}

Sequential compiled_model() {
  const Sequential model({Flatten(), Dense(256, {.activation = "relu"}),
                          Dense(256, {.activation = "relu"}), Dense(10)});
  model.compile(
      {.optimizer = Adam(1e-3), .loss = SparseCategoricalCrossentropy({.from_logits = true})});
  return model;
}

/// How long training on one thread waits for its data.
struct Waiting {
  double step = 0;     ///< seconds of a step on a batch in memory
  double augment = 0;  ///< seconds that the augmentation of a batch takes
  double share = 0;    ///< fraction of the time that the loop waits
};

/// Measures waiting with an augmentation that takes at most 0.6 of a step's time.
Waiting waiting() {
  const Sequential model = compiled_model();
  const DataPipeline data = pictures(rows / 2);
  const DataPipeline batches = data.batch(batch_size);
  const Examples batch = *batches.start(0)();
  for (int i = 0; i < 10; ++i) model.train_on_batch(batch);
  const auto many = [](const auto& call) {
    std::vector<double> times;
    for (int i = 0; i < 31; ++i) times.push_back(seconds_of(call));
    return median(times);
  };
  Waiting result;
  result.step = many([&] { model.train_on_batch(batch); });
  Blur blur{.times = 1};
  for (;; ++blur.times) {
    const Blur more{.times = blur.times + 1};
    if (many([&] { more(batch); }) > 0.6 * result.step) break;
  }
  result.augment = many([&] { blur(batch); });
  double waited = 0;
  const double all = seconds_of([&] {
    BatchLoader loader(batches.map(blur).repeat(4).prefetch(2), {});
    std::optional<Examples> next = loader.next();
    while (next) {
      model.train_on_batch(*next);
      waited += seconds_of([&] { next = loader.next(); });
    }
  });
  result.share = waited / all;
  return result;
}

}  // namespace

int bench_data(int argc, const char* const* argv) {
  DataFlags flags;
  app::AppOptions options = app::AppOptions::bare(
      "bench data",
      "Times DataPipeline: map on one and two threads, and how long training waits for data.");
  options.add({"rounds", "Data", "rounds per configuration", app::integer(flags.rounds, 1, 1000)});
  options.add({"json", "Output", "file for the times", app::output_file(flags.json, "FILE.json")});
  if (!options.parse(argc, argv)) return 0;
  at::set_num_threads(1);
  const std::vector<double> epochs = epoch_seconds({1, 2}, flags.rounds);
  const Waiting wait = waiting();
  app::Table table({"what", "figure", "bar"});
  table.add({"map, 1 thread, rows/s", app::fixed(double(rows) / epochs[0], 0), ""});
  table.add({"map, 2 threads, rows/s", app::fixed(double(rows) / epochs[1], 0), ""});
  table.add({"2 threads beside 1", app::fixed(epochs[0] / epochs[1], 2), ">= 1.5"});
  table.add({"a step, ms", app::fixed(wait.step * 1e3, 2), ""});
  table.add({"its augmentation, of a step", app::fixed(wait.augment / wait.step, 2), "<= 0.6"});
  table.add({"waiting for data, of the time", app::fixed(wait.share, 3), "<= 0.05"});
  std::cout << table.to_string();
  if (flags.json.empty()) return 0;
  write_file_atomically(flags.json, to_json_text({{"threads_ratio", epochs[0] / epochs[1]},
                                                  {"augmentation", wait.augment / wait.step},
                                                  {"waiting", wait.share}}) +
                                        "\n");
  return 0;
}

}  // namespace tessera::bench
