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

/// What is compared: on virtual CPUs, or where a device is named on one of its kind.
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
            {"attention", compare_attention}};
  }
  std::vector<Work> all = {{"dropout", compare_dropout}};
  for (const StepWork& work : step_works(device)) {
    const auto compare = work.name == "upload" ? compare_uploads : compare_steps;
    all.push_back({work.name, [=](CompareRun& run) { compare(run, work); }});
  }
  return all;
}

/// Files that exist, separated by commas.
app::OptionValue programs(std::vector<std::string>& value) {
  const auto set = [&value](const std::string& where, const std::string& text) {
    std::vector<std::string> chosen;
    std::istringstream parts(text);
    for (std::string part, path; std::getline(parts, part, ',');) {
      app::input_file(path, "").set(where, part);
      chosen.push_back(path);
    }
    value = chosen;
  };
  return {"PATH,...", app::JsonForm::text, set, [&value] { return join(value, ","); }};
}

/// What the environment says of how threads wait, which all contenders share.
std::string wait_settings() {
  std::string text;
  for (const char* variable : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) {
    const char* value = std::getenv(variable);
    if (value && *value) text += str(", ", variable, "=", value);
  }
  return text;
}

/// The works that --work names; all if it names none.
std::vector<Work> chosen_works(const CompareFlags& flags) {
  std::vector<Work> all = works(flags.device);
  if (flags.names.empty()) return all;
  std::vector<std::string> known, chosen;
  for (const Work& work : all) known.push_back(work.name);
  app::words(chosen, "", known).set("--work", flags.names);
  std::erase_if(all, [&](const Work& work) {
    return std::find(chosen.begin(), chosen.end(), work.name) == chosen.end();
  });
  return all;
}

CompareFlags parse(int argc, const char* const* argv, bool& help) {
  CompareFlags flags;
  app::AppOptions options = app::AppOptions::bare(
      "bench compare",
      "Times our work and that of the frameworks it is measured by, in turns, and says which bars "
      "are met.");
  options.add({"python", "Peers",
               "interpreters of the environments that have PyTorch, TensorFlow, "
               "JAX with optax, Keras, pandas, Pillow",
               programs(flags.python)});
  options.add({"peers", "Peers", "folder of their programs", app::input_folder(flags.peers)});
  options.add({"device", "Work",
               "training steps on one GPU in place of the works on virtual CPUs, "
               "cuda, or in small on one CPU, to try them: cpu",
               app::choice(flags.device, {"cpu", "cuda"})});
  options.add({"work", "Work", "only these", app::text(flags.names, "NAME,...")});
  options.add({"rounds", "Work", "turns of everyone", app::integer(flags.rounds, 1, 1000)});
  options.add({"steps", "Work", "timed steps in a turn, fewer where they are slow",
               app::integer(flags.steps, 1, 100000)});
  options.add({"busy", "Work", "beside a niced program on each processor that never rests",
               app::toggle(flags.busy)});
  options.add({"folder", "Output",
               "where the checkpoint and the peers' data are written, and "
               "removed; $TMPDIR if absent",
               app::folder_name(flags.folder)});
  options.add({"json", "Output", "file for the times", app::output_file(flags.json, "FILE.json")});
  help = !options.parse(argc, argv);
  return flags;
}

}  // namespace

void CompareRun::invite(std::vector<Contender>& contenders, const std::string& key,
                        const std::string& peer, const std::string& how, const std::string& program,
                        const std::vector<std::string>& arguments) const {
  if (const auto found = peers.find(key, peer, how, program, arguments)) {
    contenders.push_back(*found);
  }
}

void CompareRun::add_other(const Figures& figures, const std::string& own, const std::string& other,
                           std::optional<double> most) {
  const auto found = figures.find(other);
  if (found == figures.end()) return;
  comparison.add_other(found->second, ratio(figures.at(own), found->second, most));
}

std::string CompareRun::share(const std::string& name, const Examples& examples) const {
  const std::string path = folder + "/" + name;
  for (const auto& [ending, tensor] : {std::pair{".x", examples.x[0]}, {".y", examples.y[0]}}) {
    const at::Tensor whole = tensor.contiguous();
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(whole.const_data_ptr()),
                                           whole.nbytes());
    write_file_atomically(path + ending, std::span(&bytes, 1));
  }
  return path;
}

int bench_compare(int argc, const char* const* argv) {
  bool help = false;
  const CompareFlags flags = parse(argc, argv, help);
  if (help) return 0;
  const std::vector<Work> chosen = chosen_works(flags);
  // It says why there is none.
  if (flags.device == "cuda" && gpu_count() == 0) gpu(0);
  if (!flags.folder.empty()) ::setenv("TMPDIR", flags.folder.c_str(), 1);
  const app::TemporaryDirectory folder;
  std::optional<BusyNeighbours> neighbours;
  if (flags.busy) neighbours.emplace(std::thread::hardware_concurrency(), 19);
  CompareRun run{Peers(flags.python, flags.peers),
                 flags.rounds,
                 flags.steps,
                 flags.busy,
                 folder.path(),
                 flags.device};
  for (const Work& work : chosen) {
    std::cerr << work.name << std::flush;
    const double seconds = seconds_of([&] { work.compare(run); });
    std::cerr << ": " << app::fixed(seconds, 0) << " s" << std::endl;
  }
  std::cout << run.peers.to_string() << worker_count() << " threads" << wait_settings()
            << ". Least: of " << flags.rounds
            << " rounds' medians, in turns; it is what is compared.\n\n"
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
