#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>
#include <tessera/tessera.hpp>

#include "apps/bench/bench.hpp"
#include "apps/bench/timing.hpp"
#include "apps/common/app_options.hpp"
#include "apps/common/table.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

constexpr int64_t batch_size = 64;

struct TextFlags {
  std::string data_dir;
  int64_t max_tokens = 1200;
  int64_t rounds = 5;
  std::string json;
};

/// A pass over all texts and the seconds of its fastest round.
struct Pass {
  std::string name;
  std::function<void()> run;
  double seconds = INFINITY;
};

/// Reads every batch of an epoch, as training does.
void read_all(const Dataset& data) {
  std::vector<int64_t> rows;
  for (int64_t first = 0; first < data.size(); first += batch_size) {
    rows.clear();
    for (int64_t row = first; row < std::min(first + batch_size, data.size()); ++row) {
      rows.push_back(row);
    }
    data.get(rows);
  }
}

std::vector<Pass> make_passes(const std::shared_ptr<const TextData>& texts, int64_t max_tokens) {
  const auto tf_idf = std::make_shared<TextVectorization>(
      TextVectorizationOptions{.max_tokens = max_tokens, .output_mode = "tf_idf"});
  const auto indices = std::make_shared<TextVectorization>(
      TextVectorizationOptions{.max_tokens = max_tokens, .output_sequence_length = 250});
  const auto made = std::make_shared<std::shared_ptr<const Dataset>>();
  return {{"adapt", [=] { tf_idf->adapt(texts); }},
          {"dataset, tf_idf", [=] { *made = tf_idf->dataset(texts); }},
          {"batches of 64", [=] { read_all(**made); }},
          {"adapt, int", [=] { indices->adapt(texts); }},
          {"dataset, int", [=] { indices->dataset(texts); }}};
}

void print_text(const std::vector<Pass>& passes, const TextData& texts, double megabytes) {
  app::Table table({"pass", "ms", "MB/s", "texts/s"});
  for (const Pass& pass : passes) {
    table.add({pass.name, app::fixed(pass.seconds * 1e3, 1),
               app::fixed(megabytes / pass.seconds, 0),
               app::fixed(static_cast<double>(texts.size()) / pass.seconds, 0)});
  }
  std::cout << texts.size() << " texts of " << texts.name() << ", " << app::fixed(megabytes, 1)
            << " MB, " << worker_count() << " threads: the fastest round.\n\n"
            << table.to_string();
}

void save_text(const std::vector<Pass>& passes, double megabytes, const std::string& path) {
  Json list = Json::array();
  for (const Pass& pass : passes) {
    list.push_back({{"pass", pass.name}, {"ms", pass.seconds * 1e3}});
  }
  write_file_atomically(
      path,
      to_json_text({{"threads", worker_count()}, {"megabytes", megabytes}, {"text", list}}) + "\n");
}

}  // namespace

int bench_text(int argc, const char* const* argv) {
  TextFlags flags;
  app::AppOptions options = app::AppOptions::bare(
      "bench text", "Times TextVectorization on IMDB's reviews; reading them is not counted.");
  options.add({"data-dir", "Text", "folder of the IMDB files; by default where imdb looks",
               app::input_folder(flags.data_dir)});
  options.add(
      {"max-tokens", "Text", "size of the vocabulary", app::integer(flags.max_tokens, 3, 1000000)});
  options.add({"rounds", "Text", "rounds per pass", app::integer(flags.rounds, 1, 1000)});
  options.add({"json", "Output", "file for the times", app::output_file(flags.json, "FILE.json")});
  if (!options.parse(argc, argv)) return 0;
  const auto texts = datasets::imdb({.path = flags.data_dir});
  double bytes = 0;
  for (int64_t i = 0; i < texts->size(); ++i) bytes += static_cast<double>(texts->text(i).size());
  std::vector<Pass> passes = make_passes(texts, flags.max_tokens);
  for (int64_t round = 0; round < flags.rounds; ++round) {
    for (Pass& pass : passes) pass.seconds = std::min(pass.seconds, seconds_of(pass.run));
  }
  print_text(passes, *texts, bytes / 1e6);
  if (!flags.json.empty()) save_text(passes, bytes / 1e6, flags.json);
  return 0;
}

}  // namespace tessera::bench
