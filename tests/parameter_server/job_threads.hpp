#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <latch>
#include <string>
#include <vector>

#include <c10/core/InferenceMode.h>

#include <tessera/framework/cluster/launcher/launcher.hpp>
#include <tessera/framework/parameter_server/parameter_server_strategy.hpp>

namespace tessera::test {

using namespace detail;

/// The program that all tasks of a job run.
using JobProgram = std::function<void(strategy::ParameterServerStrategy&)>;

struct JobThreadsOptions {
  int workers = 1;
  int servers = 2;
  strategy::Partitioner partitioner = {};
  int64_t devices_per_worker = 1;
};

/// Errors of the tasks; empty for those that ended normally.
struct JobErrors {
  std::string chief;
  std::vector<std::string> workers, servers;
  /// All errors, joined; empty if there are none.
  std::string all() const {
    std::string text = chief;
    for (const std::string& error : workers) text += error;
    for (const std::string& error : servers) text += error;
    return text;
  }
};

/// Runs a program as all tasks of a job, each on a thread of this process. The coordinator starts
/// last, as a short job could end before the others connect. Ends the process after two minutes.
inline JobErrors run_job(const JobThreadsOptions& options, const JobProgram& program) {
  const std::vector<int> ports = free_ports(1 + options.workers + options.servers);
  Cluster cluster;
  cluster.source = "TF_CONFIG";
  size_t next = 0;
  const auto add = [&](TaskType type, int count) {
    std::vector<std::string> addresses;
    for (int i = 0; i < count; ++i) {
      addresses.push_back("127.0.0.1:" + std::to_string(ports[next++]));
    }
    cluster.tasks.emplace_back(type, addresses);
  };
  add(TaskType::chief, 1);
  add(TaskType::worker, options.workers);
  add(TaskType::ps, options.servers);

  std::latch listening(options.workers + options.servers);
  const auto task = [&](TaskType type, int rank) {
    return std::async(std::launch::async, [&, type, rank, cluster]() mutable {
      const c10::InferenceMode inference;
      cluster.type = type;
      cluster.rank = rank;
      bool awaited = type != TaskType::chief;
      if (!awaited) listening.wait();
      try {
        strategy::ParameterServerStrategy strategy(
            {.variable_partitioner = options.partitioner,
             .cluster = cluster,
             .devices_per_worker = options.devices_per_worker,
             .connect_timeout = std::chrono::seconds(60)});
        if (awaited) listening.count_down();
        awaited = false;
        program(strategy);
        return std::string();
      } catch (const std::exception& error) {
        if (awaited) listening.count_down();
        return std::string(error.what());
      }
    });
  };
  std::vector<std::future<std::string>> tasks;
  tasks.push_back(task(TaskType::chief, 0));
  for (int i = 0; i < options.workers; ++i) tasks.push_back(task(TaskType::worker, i + 1));
  for (int i = 0; i < options.servers; ++i) tasks.push_back(task(TaskType::ps, i));
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  for (const auto& each : tasks) {
    if (each.wait_until(end) == std::future_status::ready) continue;
    std::fprintf(stderr, "tasks of a parameter server job do not end\n");
    std::abort();
  }
  JobErrors errors{.chief = tasks[0].get(), .workers = {}, .servers = {}};
  for (int i = 0; i < options.workers; ++i) {
    errors.workers.push_back(tasks[static_cast<size_t>(1 + i)].get());
  }
  for (int i = 0; i < options.servers; ++i) {
    errors.servers.push_back(tasks[static_cast<size_t>(1 + options.workers + i)].get());
  }
  return errors;
}

}  // namespace tessera::test
