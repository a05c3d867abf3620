#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/file_descriptor.hpp>
#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/cluster/launcher/launcher.hpp>

namespace tessera::test {

using namespace detail;

/// A connection to a port of loopback; `bytes` are sent over it.
FileDescriptor connect_and_send(int port, const std::string& bytes);

/// Reads until the other side closes.
std::string read_all(const FileDescriptor& connection);

/// Options of a rank, with time-outs that no test waits for. Reports go to a folder of the test.
CoordinationOptions rank_options(int rank, int size, int port);

/// What the action was thrown; "" for nothing.
std::string error_of(const std::function<void()>& action);

/// Does the same on a thread for each rank; returns what each was thrown.
std::vector<std::string> on_threads(int size, const std::function<void(int rank)>& action);

using Ranks = std::vector<std::shared_ptr<Coordination>>;

/// The ranks of a run, all in this process.
Ranks join_all(int size, std::chrono::milliseconds timeout = std::chrono::seconds(60));

/// All leave, as the ends of their processes would.
void leave_all(Ranks& ranks);

/// A process that acts as a rank. Killed at the end of its scope if it is still there.
class RankProcess {
 public:
  /// Forks; what `action` says with `tell` are lines for the parent, as is the error it throws.
  using Tell = std::function<void(const std::string& line)>;
  explicit RankProcess(const std::function<void(const Tell& tell)>& action);
  ~RankProcess();
  RankProcess(RankProcess&& other) noexcept;
  RankProcess& operator=(RankProcess&&) = delete;

  int pid() const { return pid_; }
  void signal(int number) const;
  /// The next line; empty once it has ended.
  std::string line();
  /// Exit status, or minus the signal that killed it.
  int wait();

 private:
  int pid_ = -1;
  FileDescriptor lines_;
};

}  // namespace tessera::test
