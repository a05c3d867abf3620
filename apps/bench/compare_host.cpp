#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/tessera.hpp>

#include "apps/bench/compare.hpp"
#include "apps/bench/line_process.hpp"
#include "apps/bench/timing.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

/// Writes all texts to a file, each followed by a zero byte.
std::string share_texts(const CompareRun& run, const TextData& texts) {
  std::string all;
  for (int64_t i = 0; i < texts.size(); ++i) {
    all += texts.text(i);
    all += '\0';
  }
  const std::string path = run.folder + "/reviews";
  write_file_atomically(path, all);
  return path;
}

/// Returns the milliseconds from the start of a program to its answer to a first step.
double start_of(const Contender& contender) {
  std::unique_ptr<LineProcess> process;
  return 1e3 * seconds_of([&] {
           process = std::make_unique<LineProcess>(contender.command);
           process->run(1);
         });
}

/// Returns the megabytes by which training the large model on `devices` devices grows a process.
double growth_of(const std::string& devices) {
  LineProcess process({own_program, "compare-work", "memory", "--devices", devices});
  return process.run(3).at("megabytes").get<double>();
}

}  // namespace

void compare_text(CompareRun& run) {
  const auto texts = datasets::imdb();
  const auto peer = run.peers.find("peer", "tensorflow", " TextVectorization, one round",
                                   "tensorflow_text.py", {share_texts(run, *texts)});
  Figures figures = take_turns({own_contender("own", "ours, adapt and rows of tf-idf", {"text"})},
                               {.rounds = run.rounds, .steps = 1, .warm_up = 0});
  run.comparison.add_own("text, " + std::to_string(texts->size()) + " reviews", figures.at("own"));
  if (!peer) return;
  const Json answer = LineProcess(peer->command).run(1);
  figures["peer"] = {peer->who, answer.at("milliseconds").get<std::vector<double>>()};
  run.add_other(figures, "own", "peer", 1.0 / 20);
}

void compare_start_up(CompareRun& run) {
  Figure one{"ours, 1 device"}, many{"ours, 8 virtual devices"};
  Figure nothing{"an empty program with the same libraries"};
  for (int64_t round = 0; round < run.rounds; ++round) {
    nothing.rounds.push_back(start_of({"", "", {own_program, "compare-nothing"}}));
    one.rounds.push_back(start_of(own_contender("", "", {"first-step", "--devices", "1"})));
    many.rounds.push_back(start_of(own_contender("", "", {"first-step", "--devices", "8"})));
  }
  run.comparison.add_own("start to first step", one);
  run.comparison.add_other(nothing, difference(one, nothing, 250));
  run.comparison.add_own("start to first step", many);
  run.comparison.add_other(nothing, difference(many, nothing, 250));
}

void compare_memory(CompareRun& run) {
  Figure one{"ours, 1 device", {}, "MB"}, many{"ours, 8 virtual devices", {}, "MB"};
  for (int64_t round = 0; round < run.rounds; ++round) {
    one.rounds.push_back(growth_of("1"));
    many.rounds.push_back(growth_of("8"));
  }
  run.comparison.add_own("memory, 230 MB of weights", many);
  run.comparison.add_other(one, ratio(many, one, 1.3));
}

void compare_dispatch(CompareRun& run) {
  const c10::InferenceMode inference;
  const DTensor x = stateless_uniform({64}, Seed{1, 2}, 0, 1, at::kFloat);
  const at::Tensor plain = x.full();
  Figure own{"ours, x + x of 64 numbers on 1 device", {}, "us"}, aten{"ATen", {}, "us"};
  for (int64_t round = 0; round < run.rounds; ++round) {
    const std::vector<double> seconds =
        seconds_per_call({[&] { x + x; }, [&] { at::add(plain, plain); }});
    own.rounds.push_back(1e6 * seconds[0]);
    aten.rounds.push_back(1e6 * seconds[1]);
  }
  run.comparison.add_own("dispatch of an operation", own);
  run.comparison.add_other(aten, difference(own, aten, 2));
}

}  // namespace tessera::bench
