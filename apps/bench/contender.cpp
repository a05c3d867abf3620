#include "apps/bench/contender.hpp"

#include <algorithm>
#include <iostream>
#include <memory>

#include <tessera/framework/base/error.hpp>

#include "apps/bench/line_process.hpp"
#include "apps/bench/timing.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

/// Maximum duration of a turn; slower contenders run fewer steps.
constexpr double max_milliseconds = 3000;
constexpr int64_t min_steps = 5;

struct PeerName {
  std::string key;
  std::string name;
  std::vector<std::string> packages;  ///< the first one's version is the peer's
};

const std::vector<PeerName>& peer_names() {
  static const std::vector<PeerName> all = {
      {"torch", "PyTorch", {"torch"}},
      {"tensorflow", "TensorFlow", {"tensorflow"}},
      {"jax", "JAX", {"jax", "optax"}},
      {"keras", "Keras", {"keras", "jax"}},
      {"pandas", "pandas", {"pandas"}},
      {"transformers", "transformers", {"transformers", "torch"}},
      {"pillow", "PyTorch with Pillow", {"torch", "pillow"}},
      {"onnxruntime", "ONNX Runtime", {"onnxruntime", "torch"}},
      {"uvicorn",
       "uvicorn with ONNX Runtime",
       {"uvicorn", "starlette", "uvloop", "httptools", "orjson", "onnxruntime", "torch"}}};
  return all;
}

const PeerName& name_of(const std::string& peer) {
  return *std::find_if(peer_names().begin(), peer_names().end(),
                       [&](const PeerName& name) { return name.key == peer; });
}

/// A running contender.
struct Runner {
  Contender contender;
  std::unique_ptr<LineProcess> process;
  int64_t steps = 0;
  std::vector<double> rounds = {};

  double run(int64_t count) {
    return median(process->run(count).at("milliseconds").get<std::vector<double>>());
  }
};

bool is_own(const Contender& contender) { return contender.command[0] == own_program; }

/// Calls `work` for each runner; a peer that fails is left out.
template <class Work>
void with_each(std::vector<Runner>& runners, const Work& work) {
  for (auto runner = runners.begin(); runner != runners.end();) {
    try {
      work(*runner);
      ++runner;
    } catch (const ConfigError& error) {
      if (is_own(runner->contender)) throw;
      std::cerr << "left out: " << runner->contender.who << ": " << error.what() << std::endl;
      runner = runners.erase(runner);
    }
  }
}

}  // namespace

Contender own_contender(const std::string& key, const std::string& who,
                        const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {own_program, "compare-work"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return {key, who, std::move(command)};
}

Peers::Peers(const std::vector<std::string>& interpreters, std::string folder)
    : folder_(std::move(folder)) {
  for (const std::string& python : interpreters) {
    try {
      const Json versions = LineProcess({python, folder_ + "/packages.py"}).answer();
      environments_.push_back({python, versions.get<std::map<std::string, std::string>>()});
    } catch (const ConfigError&) {
      throw ConfigError("--python", "each is a Python 3 interpreter", python,
                        "name the python of an environment, such as venv/bin/python");
    }
  }
}

const Peers::PythonEnvironment* Peers::environment_of(const std::string& peer) const {
  const PeerName& name = name_of(peer);
  for (const PythonEnvironment& environment : environments_) {
    const bool has_all = std::all_of(
        name.packages.begin(), name.packages.end(),
        [&](const std::string& package) { return environment.versions.count(package) > 0; });
    if (has_all) return &environment;
  }
  return nullptr;
}

std::optional<Contender> Peers::find(const std::string& key, const std::string& peer,
                                     const std::string& how, const std::string& program,
                                     const std::vector<std::string>& arguments) const {
  const PythonEnvironment* environment = environment_of(peer);
  if (!environment) return std::nullopt;
  std::vector<std::string> command = {environment->python, folder_ + "/" + program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return Contender{key, name_of(peer).name + how, std::move(command)};
}

std::string Peers::to_string() const {
  std::string text;
  for (const PeerName& name : peer_names()) {
    const PythonEnvironment* environment = environment_of(name.key);
    text += name.name +
            (environment ? " " + environment->versions.at(name.packages[0])
                         : ": not found, see --python") +
            "\n";
  }
  return text;
}

Json Peers::versions() const {
  Json versions = Json::object();
  for (const PeerName& name : peer_names()) {
    if (const PythonEnvironment* environment = environment_of(name.key)) {
      versions[name.name] = environment->versions.at(name.packages[0]);
    }
  }
  return versions;
}

Figures take_turns(const std::vector<Contender>& contenders, const TurnOptions& options) {
  std::vector<Runner> runners;
  for (const Contender& contender : contenders) {
    const LineProcessOptions process{.terminal = contender.terminal};
    runners.push_back({contender, std::make_unique<LineProcess>(contender.command, process)});
  }
  // Run the first steps concurrently, as some compile for a minute.
  for (Runner& runner : runners) runner.process->tell(1);
  with_each(runners, [](Runner& runner) { runner.process->answer(); });
  with_each(runners, [&](Runner& runner) {
    const double step = runner.run(std::max<int64_t>(options.warm_up, 1));
    const auto affordable = static_cast<int64_t>(max_milliseconds / step);
    runner.steps = std::min(options.steps, std::max(affordable, min_steps));
  });
  for (int64_t round = 0; round < options.rounds; ++round) {
    with_each(runners, [&](Runner& runner) {
      if (options.warm_up > 0) runner.run(options.warm_up);
      runner.rounds.push_back(runner.run(runner.steps));
    });
  }
  Figures figures;
  for (const Runner& runner : runners) {
    figures[runner.contender.key] = {runner.contender.who, runner.rounds};
  }
  return figures;
}

}  // namespace tessera::bench
