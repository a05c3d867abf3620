#include <algorithm>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/tessera.hpp>

#include "apps/bench/bench.hpp"
#include "apps/bench/timing.hpp"
#include "apps/common/app_options.hpp"
#include "apps/common/table.hpp"
#include "apps/gpt/gpt_model.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

/// A number of texts that grow by `tokens` from prompts of `prompt` tokens on.
struct GenerateCase {
  std::string title;
  int64_t texts, prompt;
  double seconds = std::numeric_limits<double>::infinity();  ///< the least for a token of each text
  int64_t plans = 0;  ///< how many plans the last round made after its prompt
};

constexpr int64_t generated_tokens = 32;

/// Makes a GPT of two blocks, small enough that the time between operations counts.
ModelHandle generating_model() {
  const Functional model = gpt::gpt_model({.blocks = 2,
                                           .heads = 4,
                                           .head_dim = 16,
                                           .width = 64,
                                           .hidden = 256,
                                           .length = 512,
                                           .vocabulary = 1000,
                                           .pre_norm = true});
  model.compile({.layouts = LayoutMap(create_mesh({{"batch", 1}}, virtual_cpus(1)))});
  return model;
}

void time_tokens(const ModelHandle& model, GenerateCase& each) {
  const std::vector<TokenIds> prompts(size_t(each.texts), TokenIds(size_t(each.prompt), 7));
  Continuation texts(model, prompts,
                     {.max_new_tokens = generated_tokens + 2, .check_model = false});
  // The prompt, and the first call on one token.
  texts.step();
  texts.step();
  const int64_t made = plan_stats().made;
  const double seconds = seconds_of([&] {
    while (!texts.complete()) texts.step();
  });
  each.seconds = std::min(each.seconds, seconds / generated_tokens);
  each.plans = plan_stats().made - made;
}

/// Returns the least seconds of a call on one token without a cache.
double call_seconds(const ModelHandle& model, int64_t rounds) {
  const DTensor token =
      pack(at::full({1, 1}, 7, at::kLong), model->compile_options().layouts.data_layout("x", 2));
  double least = std::numeric_limits<double>::infinity();
  for (int64_t round = 0; round <= rounds * generated_tokens; ++round) {
    least = std::min(least, seconds_of([&] { model(token).full(); }));
  }
  return least;
}

}  // namespace

int bench_generate(int argc, const char* const* argv) {
  int64_t rounds = 10;
  std::string json;
  app::AppOptions options = app::AppOptions::bare(
      "bench generate", "Times tokens of a small GPT behind short and long texts.");
  options.add({"rounds", "Generate", "rounds per configuration", app::integer(rounds, 1, 1000)});
  options.add({"json", "Output", "file for the times", app::output_file(json, "FILE.json")});
  if (!options.parse(argc, argv)) return 0;
  at::set_num_threads(1);
  const ModelHandle model = generating_model();
  std::vector<GenerateCase> cases = {
      {.title = "a token behind 16", .texts = 1, .prompt = 16},
      {.title = "a token behind 300", .texts = 1, .prompt = 300},
      {.title = "8 tokens, of texts of 300", .texts = 8, .prompt = 300}};
  for (int64_t round = 0; round < rounds; ++round) {
    for (GenerateCase& each : cases) time_tokens(model, each);
  }
  const double alone = call_seconds(model, rounds);
  app::Table table({"what", "µs", "plans"});
  Json times = Json::object();
  for (const GenerateCase& each : cases) {
    table.add({each.title, app::fixed(each.seconds * 1e6, 0), str(each.plans)});
    times[each.title] = each.seconds;
  }
  table.add({"a call on one token without a cache", app::fixed(alone * 1e6, 0), ""});
  times["alone"] = alone;
  std::cout << table.to_string();
  if (!json.empty()) write_file_atomically(json, to_json_text(times) + "\n");
  return 0;
}

}  // namespace tessera::bench
