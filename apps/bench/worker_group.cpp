#include "apps/bench/worker_group.hpp"

#include <tessera/framework/cluster/launcher/launcher.hpp>

namespace tessera::bench {

using namespace detail;

WorkerGroup::WorkerGroup(int count, const std::vector<std::string>& command) {
  const std::string port = std::to_string(free_port());
  for (int i = 0; i < count; ++i) {
    const std::string rank = std::to_string(i);
    const LineProcessOptions options{.environment = {{"RANK", rank},
                                                     {"LOCAL_RANK", rank},
                                                     {"WORLD_SIZE", std::to_string(count)},
                                                     {"MASTER_ADDR", "127.0.0.1"},
                                                     {"MASTER_PORT", port},
                                                     {"OMP_NUM_THREADS", "1"}}};
    workers_.push_back(std::make_unique<LineProcess>(command, options));
  }
}

WorkerGroup::~WorkerGroup() {
  // Close all inputs before waiting for any process, as they exit together.
  for (const auto& worker : workers_) worker->end_input();
}

Json WorkerGroup::run(int64_t steps) {
  for (const auto& worker : workers_) worker->tell(steps);
  return workers_[0]->answer();
}

}  // namespace tessera::bench
