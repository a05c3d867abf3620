#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <optional>
#include <span>
#include <sstream>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>

#include "apps/bench/bench.hpp"
#include "apps/bench/busy_neighbours.hpp"
#include "apps/bench/compare.hpp"
#include "apps/bench/timing.hpp"
#include "apps/common/app_options.hpp"
#include "apps/common/table.hpp"
#include "apps/common/temporary_folder.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

struct CompareFlags {
  std::vector<std::string> python;
  std::string peers = TESSERA_PEERS_DIR;
  std::string device;
  std::string names;
  int64_t rounds = 5;
  int64_t steps = 40;
  bool busy = false;
  std::string folder;
  std::string json;
};

struct Work {
  std::string name;
  std::function<void(CompareRun&)> compare;
};

/// Returns the works for virtual CPUs, or for one device of type `device`.
std::vector<Work> works(const std::string& device) {
  if (device.empty()) {
    return {{"mlp", compare_mlp},
            {"imdb", compare_imdb},
            {"fit", compare_fit},
            {"cnn", compare_cnn},
            {"text", compare_text},
            {"start-up", compare_start_up},
            {"checkpoint", compare_checkpoint},
            {"memory", compare_memory},
            {"dispatch", compare_dispatch},
            {"csv", compare_csv},
            {"pictures", compare_pictures},
            {"transformer", compare_transformer},
            {"attention", compare_attention},
            {"vision", compare_vision},
            {"recurrent", compare_recurrent},
            {"embedding", compare_embedding},
            {"inference", compare_inference},
            {"generate", compare_generate},
            {"remat", compare_remat},
            {"logits", compare_logits},
            {"invariant", compare_invariant},
            {"pipeline", compare_pipeline},
            {"serving", compare_serving}};
  }
  std::vector<Work> all = {{"dropout", compare_dropout}};
  for (const StepWork& work : step_works(device)) {
    const auto compare = work.name == "upload" ? compare_uploads : compare_steps;
    all.push_back({work.name, [=](CompareRun& run) { compare(run, work); }});
  }
  return all;
}

/// Takes comma-separated paths of files that exist.
app::OptionValue programs(std::vector<std::string>& value) {
  const auto set = [&value](const std::string& where, const std::string& text) {
    std::vector<std::string> selected;
    std::istringstream parts(text);
    for (std::string part, path; std::getline(parts, part, ',');) {
      app::input_file(path, "").set(where, part);
      selected.push_back(path);
    }
    value = selected;
  };
  return {"PATH,...", app::JsonType::text, set, [&value] { return join(value, ","); }};
}

/// Returns the environment's settings of how threads wait, which all contenders share.
std::string wait_settings() {
  std::string text;
  for (const char* variable : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) {
    const char* value = std::getenv(variable);
    if (value && *value) text += str(", ", variable, "=", value);
  }
  return text;
}

/// Returns the works that --work names (default: all).
std::vector<Work> selected_works(const CompareFlags& flags) {
  std::vector<Work> all = works(flags.device);
  if (flags.names.empty()) return all;
  std::vector<std::string> known, selected;
  for (const Work& work : all) known.push_back(work.name);
  app::words(selected, "", known).set("--work", flags.names);
  std::erase_if(all, [&](const Work& work) {
    return std::find(selected.begin(), selected.end(), work.name) == selected.end();
  });
  return all;
}

CompareFlags parse(int argc, const char* const* argv, bool& help) {
  CompareFlags flags;
  app::AppOptions options = app::AppOptions::bare(
      "bench compare",
      "Compares Tessera's times with those of other frameworks, in turns, and reports which bars "
      "are met.");
  options.add({"python", "Peers",
               "interpreters of environments with PyTorch, TensorFlow, JAX and "
               "optax, Keras, pandas or Pillow",
               programs(flags.python)});
  options.add({"peers", "Peers", "folder of the peers' programs", app::input_folder(flags.peers)});
  options.add({"device", "Work",
               "instead of works on virtual CPUs: training steps on one GPU (cuda), or "
               "small ones on one CPU (cpu), to try the programs",
               app::choice(flags.device, {"cpu", "cuda"})});
  options.add({"work", "Work", "works to run; by default all", app::text(flags.names, "NAME,...")});
  options.add({"rounds", "Work", "rounds per contender", app::integer(flags.rounds, 1, 1000)});
  options.add({"steps", "Work", "timed steps per round; fewer if they are slow",
               app::integer(flags.steps, 1, 100000)});
  options.add({"busy", "Work", "run a niced busy loop on each processor meanwhile",
               app::toggle(flags.busy)});
  options.add({"folder", "Output",
               "folder for the checkpoint and the peers' data, which are "
               "removed; by default $TMPDIR",
               app::folder_name(flags.folder)});
  options.add({"json", "Output", "file for the times", app::output_file(flags.json, "FILE.json")});
  help = !options.parse(argc, argv);
  return flags;
}

}  // namespace

void CompareRun::add_peer(std::vector<Contender>& contenders, const std::string& key,
                          const std::string& peer, const std::string& how,
                          const std::string& program,
                          const std::vector<std::string>& arguments) const {
  if (const auto found = peers.find(key, peer, how, program, arguments)) {
    contenders.push_back(*found);
  }
}

void CompareRun::add_other(const Figures& figures, const std::string& own, const std::string& other,
                           std::optional<double> limit) {
  const auto found = figures.find(other);
  if (found == figures.end()) return;
  comparison.add_other(found->second, ratio(figures.at(own), found->second, limit));
}

std::string CompareRun::share(const std::string& name, const Examples& examples) const {
  std::string path = folder + "/" + name;
  for (const auto& [ending, tensor] : {std::pair{".x", examples.x[0]}, {".y", examples.y[0]}}) {
    const at::Tensor contiguous_tensor = tensor.contiguous();
    const std::span<const std::byte> bytes(
        static_cast<const std::byte*>(contiguous_tensor.const_data_ptr()),
        contiguous_tensor.nbytes());
    write_file_atomically(path + ending, std::span(&bytes, 1));
  }
  return path;
}

int bench_compare(int argc, const char* const* argv) {
  bool help = false;
  const CompareFlags flags = parse(argc, argv, help);
  if (help) return 0;
  const std::vector<Work> selected = selected_works(flags);
  // gpu(0) throws the reason why there is no GPU.
  if (flags.device == "cuda" && gpu_count() == 0) gpu(0);
  if (!flags.folder.empty()) ::setenv("TMPDIR", flags.folder.c_str(), 1);
  const app::TemporaryDirectory folder;
  std::optional<BusyLoops> neighbours;
  if (flags.busy) neighbours.emplace(std::thread::hardware_concurrency(), 19);
  CompareRun run{Peers(flags.python, flags.peers),
                 flags.rounds,
                 flags.steps,
                 flags.busy,
                 folder.path(),
                 flags.device};
  for (const Work& work : selected) {
    std::cerr << work.name << std::flush;
    const double seconds = seconds_of([&] { work.compare(run); });
    std::cerr << ": " << app::fixed(seconds, 0) << " s" << std::endl;
  }
  std::cout << run.peers.to_string() << worker_count() << " threads" << wait_settings()
            << ". Least: the minimum of the medians of " << flags.rounds
            << " rounds, in turns; this is compared.\n\n"
            << run.comparison.to_string();
  if (!flags.json.empty()) {
    const Json json{{"threads", worker_count()},
                    {"steps", flags.steps},
                    {"busy", flags.busy},
                    {"peers", run.peers.versions()},
                    {"compare", run.comparison.to_json()}};
    write_file_atomically(flags.json, to_json_text(json) + "\n");
  }
  return 0;
}

}  // namespace tessera::bench
