#include <string>
#include <utility>
#include <vector>

#include <tessera/tessera.hpp>

#include "apps/bench/compare.hpp"
#include "apps/bench/models.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

std::string devices_text(const std::string& devices) {
  return devices + (devices == "1" ? " device" : " virtual devices");
}

Contender own_mlp(const std::string& devices, const std::string& blocks) {
  return own_contender("own " + devices + " " + blocks,
                       "ours, " + devices_text(devices) + (devices == "8" ? ", " + blocks : ""),
                       {"mlp", "--devices", devices, "--blocks", blocks});
}

Examples all_of(const Dataset& data) {
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < data.size(); ++row) rows.push_back(row);
  return data.get(rows);
}

}  // namespace

void compare_mlp(CompareRun& run) {
  const std::string data = run.share("mlp", all_of(mlp_data()));
  std::vector<Contender> all = {own_mlp("1", "per_worker"), own_mlp("2", "per_worker"),
                                own_mlp("8", "per_worker"), own_mlp("8", "per_shard"),
                                own_mlp("8", "per_device"), own_mlp("64", "per_worker")};
  run.invite(all, "torch", "torch", ", fused Adam, 1 device", "torch_mlp.py", {data});
  for (const std::string devices : {"8", "64"}) {
    const std::string where = ", " + devices_text(devices);
    run.invite(all, "tensorflow " + devices, "tensorflow", " DTensor" + where,
               "tensorflow_mlp.py", {data, devices});
    run.invite(all, "jax " + devices, "jax", where, "jax_mlp.py", {data, devices});
  }
  const Figures figures = take_turns(all, {.rounds = run.rounds, .steps = run.steps});
  const std::string own = "own 8 per_worker";
  run.comparison.add_own("mlp, 8 devices", figures.at(own));
  run.add_other(figures, own, "torch", 1.15);
  run.add_other(figures, own, "tensorflow 8", 1.0 / 7);
  run.add_other(figures, own, "jax 8", 1.0 / 3);
  run.add_other(figures, own, "own 8 per_shard");
  run.add_other(figures, own, "own 8 per_device");
  run.comparison.add_own("mlp, 1 device", figures.at("own 1 per_worker"));
  run.add_other(figures, "own 1 per_worker", "torch", 1.05);
  run.comparison.add_own("mlp, 2 devices", figures.at("own 2 per_worker"));
  run.add_other(figures, "own 2 per_worker", "torch");
  run.comparison.add_own("mlp, 64 devices", figures.at("own 64 per_worker"));
  run.add_other(figures, "own 64 per_worker", own, 1.5);
  run.add_other(figures, "own 64 per_worker", "tensorflow 64");
  run.add_other(figures, "own 64 per_worker", "jax 64");
}

void compare_imdb(CompareRun& run) {
  const std::string data = run.share("imdb", all_of(imdb_data()));
  const std::vector<std::string> schemes = {"data", "model", "spatial"};
  std::vector<Contender> all;
  run.invite(all, "torch", "torch", ", 1 device", "torch_imdb.py", {data});
  for (const std::string& scheme : schemes) {
    all.push_back(own_contender("own " + scheme, "ours, " + devices_text("8"),
                                {"imdb", "--scheme", scheme}));
    run.invite(all, "tensorflow " + scheme, "tensorflow", " DTensor, " + devices_text("8"),
               "tensorflow_imdb.py", {data, scheme});
    run.invite(all, "jax " + scheme, "jax", ", " + devices_text("8"), "jax_imdb.py",
               {data, scheme});
  }
  const Figures figures = take_turns(all, {.rounds = run.rounds, .steps = 4 * run.steps});
  for (const std::string& scheme : schemes) {
    const std::string own = "own " + scheme;
    run.comparison.add_own("imdb, " + scheme, figures.at(own));
    run.add_other(figures, own, "torch", 1.5);
    run.add_other(figures, own, "tensorflow " + scheme, 0.25);
    run.add_other(figures, own, "jax " + scheme);
  }
}

void compare_fit(CompareRun& run) {
  const std::string data = run.share("digits", all_of(datasets::mnist()));
  std::vector<Contender> all = {own_contender("own", "ours, fit with its bar", {"fit"})};
  run.invite(all, "keras", "keras", " on JAX, fit with its bar", "keras_fit.py",
             {data, "jax", "dense"});
  for (Contender& contender : all) contender.terminal = true;
  run.invite(all, "torch", "torch", ", a loop by hand", "torch_fit.py",
             {data, "dense"});
  // Of two epochs.
  const Figures figures = take_turns(all, {.rounds = run.rounds, .steps = 2, .warm_up = 0});
  run.comparison.add_own("fit, a step", figures.at("own"));
  run.add_other(figures, "own", "keras", 1.0);
  run.add_other(figures, "own", "torch", 1.1);
}

void compare_cnn(CompareRun& run) {
  const std::string data = run.share("cnn", all_of(cnn_data()));
  std::vector<Contender> all = {own_contender("own", "ours, fit with its bar", {"cnn"})};
  for (const auto& [backend, name] : {std::pair("tensorflow", "TensorFlow"), {"jax", "JAX"}}) {
    run.invite(all, backend, "keras", str(" on ", name, ", fit with its bar"), "keras_fit.py",
               {data, backend, "cnn"});
  }
  for (Contender& contender : all) contender.terminal = true;
  run.invite(all, "torch", "torch", ", a loop by hand", "torch_fit.py", {data, "cnn"});
  // Of an epoch; the first compiles.
  const Figures figures = take_turns(all, {.rounds = run.rounds, .steps = 1, .warm_up = 1});
  run.comparison.add_own("cnn fit, a step", figures.at("own"));
  for (const char* other : {"tensorflow", "jax", "torch"}) {
    run.add_other(figures, "own", other, run.busy ? 1.5 : 1.05);
  }
}

}  // namespace tessera::bench
