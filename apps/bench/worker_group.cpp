#include "apps/bench/worker_group.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include <tessera/framework/base/internal/hex.hpp>
#include <tessera/framework/cluster/internal/job_secret.hpp>
#include <tessera/framework/cluster/launcher/launcher.hpp>
#include <tessera/framework/cluster/membership/register_server.hpp>

namespace tessera::bench {

using namespace detail;

/// The register of members of an elastic run, as a launcher holds it.
class WorkerGroup::Register {
 public:
  explicit Register(int count) : secret_(to_hex(random_nonce())), server_(options(count)) {}
  ~Register() {
    stops_ = true;
    if (thread_.joinable()) thread_.join();
  }
  Register(const Register&) = delete;
  Register& operator=(const Register&) = delete;

  LineProcessOptions for_worker(const std::string& slot) const {
    return {.environment = {{"TESSERA_MEMBERS", server_.where()},
                            {"TESSERA_SECRET", secret_},
                            {"LOCAL_RANK", slot},
                            {"OMP_NUM_THREADS", "1"}}};
  }
  /// Begins to serve, once the processes are started.
  void start() {
    thread_ = std::thread([this] {
      while (!stops_) {
        std::vector<pollfd> entries;
        server_.add_to(entries);
        ::poll(entries.data(), entries.size(), std::min(20, poll_time(server_.wake_time())));
        server_.serve();
      }
    });
  }

 private:
  RegisterOptions options(int count) const {
    RegisterOptions options;
    options.rules = {.min_processes = count, .max_processes = count, .expected = count};
    options.access.secret = secret_;
    return options;
  }

  std::string secret_;
  RegisterServer server_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

WorkerGroup::WorkerGroup(int count, const std::vector<std::string>& command, bool elastic) {
  if (elastic) register_ = std::make_unique<Register>(count);
  const std::string port = std::to_string(free_port());
  for (int i = 0; i < count; ++i) {
    const std::string rank = std::to_string(i);
    const LineProcessOptions by_rank{.environment = {{"RANK", rank},
                                                     {"LOCAL_RANK", rank},
                                                     {"WORLD_SIZE", std::to_string(count)},
                                                     {"MASTER_ADDR", "127.0.0.1"},
                                                     {"MASTER_PORT", port},
                                                     {"OMP_NUM_THREADS", "1"}}};
    workers_.push_back(
        std::make_unique<LineProcess>(command, register_ ? register_->for_worker(rank) : by_rank));
  }
  if (register_) register_->start();
}

WorkerGroup::~WorkerGroup() {
  // Close all inputs before waiting for any process, as they exit together.
  for (const auto& worker : workers_) worker->end_input();
  workers_.clear();
}

Json WorkerGroup::run(int64_t steps) {
  for (const auto& worker : workers_) worker->tell(steps);
  return workers_[0]->answer();
}

}  // namespace tessera::bench
