#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/files.hpp"
#include "tests/support/small_model.hpp"

/// What the stages of a step send to each other, and what a profile shows of them.
namespace pipeline_log_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

constexpr int64_t rows = 24, microbatches = 4;

/// Three layers of 14, 9 and 5 units, each a stage.
Sequential three_stages(const MeshDims& mesh, const std::string& schedule, bool clip) {
  LayoutMap layouts(create_mesh(mesh));
  layouts.set_pipeline({.microbatches = microbatches, .schedule = schedule});
  const Sequential model = small_model();
  CompileOptions options = small_compile(layouts);
  options.metrics = {};
  if (clip) options.optimizer = Adam(1e-2, {.global_clipnorm = 0.5});
  model.compile(options);
  return model;
}

std::vector<int64_t> all_rows() {
  std::vector<int64_t> all(static_cast<size_t>(rows));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Examples batch() { return small_data(rows).get(all_rows()); }

/// Collectives, their dimensions and bytes, and how many there are of each.
using Counts = std::map<std::string, int64_t>;

std::string line(CommOp op, int64_t bytes) { return str(to_string(op), " stage ", bytes); }

Counts logged_step(const ModelHandle& model, const Examples& examples = batch()) {
  model.train_on_batch(examples);
  CommLog log;
  {
    const CommLogScope scope(log);
    model.train_on_batch(examples);
  }
  Counts counts;
  for (const CommEntry& entry : log.entries()) {
    ++counts[str(to_string(entry.op), " ", entry.dims, " ", entry.bytes)];
  }
  return counts;
}

}  // namespace

TEST_CASE("stages send each microbatch's activations and their gradients once, and a loss",
          "[pipeline]") {
  constexpr int64_t part = rows / microbatches * 8;
  for (const char* const schedule : {"gpipe", "1f1b", "zb_h1"}) {
    CAPTURE(schedule);
    // Forward and back across each of two borders, and the loss to all.
    const Counts expected = {{line(CommOp::transfer, part * 14), 2 * microbatches},
                             {line(CommOp::transfer, part * 9), 2 * microbatches},
                             {line(CommOp::transfer, 8), 1}};
    CHECK(logged_step(three_stages({{"stage", 3}}, schedule, false)) == expected);
    Counts clipped = expected;
    clipped[line(CommOp::all_reduce, 8)] = 1;
    CHECK(logged_step(three_stages({{"stage", 3}}, schedule, true)) == clipped);
  }
}

TEST_CASE("two shards of a batch send half of the activations each", "[pipeline]") {
  constexpr int64_t part = rows / microbatches / 2 * 8;
  const Counts counts = logged_step(three_stages({{"stage", 3}, {"batch", 2}}, "1f1b", false));
  CHECK(counts.at(line(CommOp::transfer, part * 14)) == 2 * microbatches);
  CHECK(counts.at(line(CommOp::transfer, part * 9)) == 2 * microbatches);
}

TEST_CASE("a tied table goes to its head's stage once a step, and its gradient back once",
          "[pipeline]") {
  const DTypeScope dtype("float64");
  constexpr int64_t words = 11, width = 7, length = 5;
  const at::Tensor ids = at::arange(rows * length).mul(3).remainder(words).view({rows, length});
  for (const char* const schedule : {"gpipe", "1f1b", "zb_h1"}) {
    CAPTURE(schedule);
    LayoutMap layouts(create_mesh({{"stage", 3}}));
    layouts.set_pipeline({.microbatches = microbatches, .schedule = schedule});
    const Input in({length}, {.dtype = "int64"});
    const ReversibleEmbedding table(words, width);
    const SymbolicTensor hidden = Dense(width)(Dense(9)(table(in)));
    const Functional model({in}, {table.reversed()(hidden)});
    model.compile({.optimizer = Adam(1e-2),
                   .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                   .layouts = layouts});
    const Counts counts = logged_step(model, TensorDataset(ids, ids).get(all_rows()));
    CHECK(counts.at(line(CommOp::transfer, words * width * 8)) == 2);
  }
}

TEST_CASE("a profile has a span of each action of the schedule", "[pipeline]") {
  const Sequential model = three_stages({{"stage", 3}}, "zb_h1", false);
  model.train_on_batch(batch());
  Profile profile;
  model.train_on_batch(batch());
  profile.stop();
  std::set<std::string> shown, expected;
  for (const Profile::Row& row : profile.rows()) {
    if (row.name.find(" stage ") == std::string::npos) continue;
    shown.insert(row.name);
    CHECK(row.calls == 1);
  }
  for (const char* const kind : {"F", "I", "W"}) {
    for (int64_t i = 0; i < microbatches; ++i) {
      for (int64_t stage = 0; stage < 3; ++stage) expected.insert(str(kind, i, " stage ", stage));
    }
  }
  CHECK(shown == expected);
}

}  // namespace pipeline_log_test
