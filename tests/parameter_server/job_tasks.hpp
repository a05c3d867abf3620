#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/launcher/launcher.hpp>
#include <tessera/framework/parameter_server/cluster_coordinator.hpp>
#include <tessera/framework/parameter_server/parameter_server_strategy.hpp>

namespace tessera::test {

using namespace detail;

/// Tasks of a parameter server job as threads of this process; each may start and end separately.
class JobTasks {
 public:
  using Program = std::function<void(strategy::ParameterServerStrategy&)>;
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(20);
  std::string secret = {};

  JobTasks(int workers, int servers, bool evaluator = false) {
    const std::vector<int> ports = free_ports(1 + workers + servers + (evaluator ? 1 : 0));
    size_t next = 0;
    const auto add = [&](TaskType type, int count) {
      std::vector<std::string> addresses;
      for (int i = 0; i < count; ++i) addresses.push_back(str("127.0.0.1:", ports[next++]));
      if (count > 0) cluster_.tasks.emplace_back(type, addresses);
    };
    cluster_.source = "TF_CONFIG";
    add(TaskType::chief, 1);
    add(TaskType::worker, workers);
    add(TaskType::ps, servers);
    add(TaskType::evaluator, evaluator ? 1 : 0);
  }

  strategy::ParameterServerOptions options(TaskType type, int index = 0) const {
    Cluster cluster = cluster_;
    cluster.type = type;
    cluster.rank = index + (type == TaskType::worker ? 1 : 0);
    cluster.secret = secret;
    return {
        .cluster = cluster, .connect_timeout = connect_timeout, .timeout = std::chrono::seconds(5)};
  }
  std::string address(TaskType type, int index = 0) const {
    for (const auto& [of, list] : cluster_.tasks) {
      if (of == type) return list[static_cast<size_t>(index)];
    }
    return "";
  }

  /// Runs a program as a task on a thread; the future holds what it threw, or "".
  std::future<std::string> start(TaskType type, int index, Program program) const {
    return std::async(std::launch::async,
                      [options = this->options(type, index), program = std::move(program)] {
                        const c10::InferenceMode inference;
                        try {
                          strategy::ParameterServerStrategy strategy(options);
                          program(strategy);
                          return std::string();
                        } catch (const std::exception& error) {
                          return std::string(error.what());
                        }
                      });
  }

  /// Starts all workers and parameter servers, which run `set_up` and then join().
  std::vector<std::future<std::string>> start_all(const Program& set_up) const {
    std::vector<std::future<std::string>> tasks;
    for (const auto& [type, list] : cluster_.tasks) {
      if (type == TaskType::chief) continue;
      for (size_t i = 0; i < list.size(); ++i) {
        tasks.push_back(start(type, static_cast<int>(i), joining(set_up)));
      }
    }
    return tasks;
  }

  static Program joining(const Program& set_up) {
    return [set_up](strategy::ParameterServerStrategy& strategy) {
      set_up(strategy);
      strategy.join();
    };
  }

 private:
  Cluster cluster_;
};

/// Returns what a task threw; waits for its end, at most a minute.
inline std::string end_of(std::future<std::string>& task) {
  if (task.wait_for(std::chrono::minutes(1)) != std::future_status::ready) {
    std::fprintf(stderr, "a task of a parameter server job does not end\n");
    std::abort();
  }
  return task.get();
}

/// Returns what the tasks threw, joined.
inline std::string ends_of(std::vector<std::future<std::string>>& tasks) {
  std::string all;
  for (auto& task : tasks) all += end_of(task);
  return all;
}

/// Returns what a call throws; "" if it does not.
template <class Function>
std::string error_of(const Function& function) {
  try {
    function();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace tessera::test
