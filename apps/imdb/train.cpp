#include "apps/imdb/train.hpp"

#include <chrono>
#include <cstdio>
#include <iostream>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/io/export.hpp>
#include <tessera/framework/training/plot_history.hpp>

#include "apps/common/processes.hpp"
#include "apps/common/profiling.hpp"
#include "apps/common/setup.hpp"
#include "apps/imdb/training_run.hpp"

namespace tessera::imdb {

using namespace detail;

namespace {

/// Concatenates the histories of all schemes, as if one call of fit had trained them.
History joined(const std::vector<Phase>& phases) {
  History all = phases.front().history;
  for (size_t i = 1; i < phases.size(); ++i) {
    const History& next = phases[i].history;
    for (size_t j = 0; j < next.epoch.size(); ++j) {
      Logs logs;
      for (const auto& [name, course] : next.history) logs.emplace_back(name, course.at(j));
      all.append(static_cast<int64_t>(all.epoch.size()), logs);
    }
    all.steps.insert(all.steps.end(), next.steps.begin(), next.steps.end());
  }
  return all;
}

/// Writes a single scheme's history in fit's format, or a list of phases if there are several.
void save_history(const std::vector<Phase>& phases, const std::string& path) {
  if (phases.size() == 1) return phases.front().history.save(path);
  Json list = Json::array();
  for (const Phase& phase : phases) {
    Json history = phase.history.as_json();
    list.push_back({{"scheme", phase.scheme},
                    {"mesh", phase.mesh},
                    {"history", history["history"]},
                    {"steps", history["steps"]}});
  }
  const Json json{{"phases", list}, {"data", phases.front().history.data}};
  write_file_atomically(path, to_json_text(json, -1) + "\n");
}

void export_trained(const TrainingRun& run, const Corpus& corpus, const std::string& folder,
                    bool prints) {
  std::vector<std::string> sample;
  for (int64_t row = 0; row < std::min<int64_t>(corpus.reviews->size(), 4); ++row) {
    sample.emplace_back(corpus.reviews->text(row));
  }
  const int64_t version = export_model(run.model(), folder,
                                       {.text = corpus.vectorize,
                                        .sample = sample,
                                        .labels = {"negative", "positive"},
                                        .activation = "softmax",
                                        .step = run.steps()});
  if (prints) std::cout << "Exported version " << version << " to " << folder << std::endl;
}

/// Prints the results of the last epoch in one line.
void print_summary(const std::vector<Phase>& phases, int64_t reviews, double seconds) {
  const History& history = phases.back().history;
  if (history.epoch.empty()) return;
  const bool validated = std::any_of(history.history.begin(), history.history.end(),
                                     [](const auto& course) { return course.first == "val_loss"; });
  const std::string prefix = validated ? "val_" : "";
  size_t epochs = 0;
  for (const Phase& phase : phases) epochs += phase.history.epoch.size();
  std::printf("%s accuracy %.4f, loss %.4f on %lld reviews (%s), %zu epoch%s, %.1f s\n",
              validated ? "test" : "training", history.at(prefix + "accuracy").back(),
              history.at(prefix + "loss").back(), static_cast<long long>(reviews),
              history.data.c_str(), epochs, epochs == 1 ? "" : "s", seconds);
  std::fflush(stdout);
}

}  // namespace

int train_main(int argc, const char* const* argv) {
  app::AppOptions options("imdb train",
                          "Trains a classifier of film reviews, as the DTensor tutorial does.");
  TrainFlags flags;
  if (!parse_train_options(options, flags, argc, argv)) return 0;
  const app::CommonOptions& common = options.common();
  const std::vector<Scheme> schemes = phases_of(flags, common);
  // Report errors in meshes and layouts before reading the data, which takes long.
  for (const Scheme& scheme : schemes) app::set_up(common, {{"batch", 8}}, scheme.layouts);
  const Corpus corpus = read_corpus(flags, common);
  TrainingRun run(flags, common, corpus, schemes);
  app::Profiling profiling(common);
  const auto start = std::chrono::steady_clock::now();
  {
    const StopSignals signals;
    run.train();
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  profiling.stop();
  const bool first = app::is_first_process(common);
  if (first && !common.history.empty()) save_history(run.phases(), common.history);
  if (first && !common.plot.empty()) save_plot(joined(run.phases()), common.plot);
  if (!flags.export_folder.empty()) export_trained(run, corpus, flags.export_folder, first);
  const std::string profile = profiling.finish();
  if (app::verbosity(common) > 0) {
    const int64_t reviews = corpus.test ? corpus.test->size() : corpus.reviews->size();
    print_summary(run.phases(), reviews, elapsed.count());
    std::cout << profile << std::flush;
  }
  return 0;
}

}  // namespace tessera::imdb
