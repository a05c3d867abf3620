#include "apps/imdb/predict.hpp"

#include <iostream>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/io/export.hpp>

#include "apps/common/app_options.hpp"
#include "apps/common/table.hpp"

namespace tessera::imdb {

using namespace detail;

namespace {

constexpr size_t max_lines = 256;

struct PredictFlags {
  std::string folder;
  std::vector<std::string> texts;
  bool json = false;
};

/// Returns a row's label and the probability of each class; classes without labels are numbered.
Json json_of(const ExportedModel& model, const at::Tensor& row) {
  Json json = Json::object();
  const auto decided = model.decide(row.unsqueeze(0));
  if (!decided.empty()) {
    json = {{"label", decided[0].first}, {"probability", decided[0].second}};
  }
  Json probabilities = Json::object();
  for (int64_t c = 0; c < row.numel(); ++c) {
    const bool named = static_cast<int64_t>(model.labels.size()) == row.numel();
    const std::string name = named ? model.labels[static_cast<size_t>(c)] : std::to_string(c);
    probabilities[name] = row[c].item<double>();
  }
  json["probabilities"] = probabilities;
  return json;
}

void print(const ExportedModel& model, const std::vector<std::string>& texts, bool json) {
  if (texts.empty()) return;
  const at::Tensor outputs = model.predict(texts).to(at::kDouble).flatten(1);
  const auto decided = model.decide(outputs);
  for (int64_t r = 0; r < outputs.size(0); ++r) {
    const auto row = static_cast<size_t>(r);
    if (json || decided.empty()) {
      std::cout << to_json_text(json_of(model, outputs[r]), -1) << '\n';
    } else {
      std::cout << decided[row].first << ' ' << app::fixed(decided[row].second, 6) << '\n';
    }
  }
  std::cout << std::flush;
}

/// Predicts lines as they arrive; lines that are available together share a batch.
void print_lines(const ExportedModel& model, std::istream& in, bool json) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
    if (lines.size() < max_lines && in.rdbuf()->in_avail() > 0) continue;
    print(model, lines, json);
    lines.clear();
  }
  print(model, lines, json);
}

}  // namespace

int predict_main(int argc, const char* const* argv) {
  PredictFlags flags;
  app::AppOptions options = app::AppOptions::bare(
      "imdb predict", "Prints label and probability of texts, or of the standard input's lines.");
  options.add_argument("DIR", "folder of an export", flags.folder);
  options.add_arguments("TEXT", "texts; after -- they may begin with a dash", flags.texts);
  options.add({"json", "Output", "print a JSON object for each text", app::toggle(flags.json)});
  if (!options.parse(argc, argv)) return 0;
  const ExportedModel model = load_export(flags.folder);
  if (!flags.texts.empty()) {
    print(model, flags.texts, flags.json);
  } else {
    std::ios::sync_with_stdio(false);
    print_lines(model, std::cin, flags.json);
  }
  return 0;
}

}  // namespace tessera::imdb
