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

/// Connects to a loopback port and sends `bytes`.
FileDescriptor connect_and_send(int port, const std::string& bytes);

/// Reads until the other side closes.
std::string read_all(const FileDescriptor& connection);

/// Returns options of a rank, with timeouts that no test reaches. Reports go to a folder of the
/// test.
CoordinationOptions rank_options(int rank, int size, int port);

/// Returns the text of the error that `action` throws; "" if it throws none.
std::string error_of(const std::function<void()>& action);

/// Runs `action` on one thread per rank and returns each rank's error text.
std::vector<std::string> on_threads(int size, const std::function<void(int rank)>& action);

using Ranks = std::vector<std::shared_ptr<Coordination>>;

/// Joins all ranks of a run in this process.
Ranks join_all(int size, std::chrono::milliseconds timeout = std::chrono::seconds(60));

/// Makes all ranks leave, as at the end of their processes.
void leave_all(Ranks& ranks);

/// A process that acts as a rank. Killed at the end of its scope if it is still there.
class RankProcess {
 public:
  /// Forks. The parent reads the lines that `action` passes to `tell`, and the error that it
  /// throws.
  using Tell = std::function<void(const std::string& line)>;
  explicit RankProcess(const std::function<void(const Tell& tell)>& action);
  ~RankProcess();
  RankProcess(RankProcess&& other) noexcept;
  RankProcess& operator=(RankProcess&&) = delete;

  int pid() const { return pid_; }
  void signal(int number) const;
  /// Returns the next line; "" once the process has ended.
  std::string line();
  /// Returns the exit status, or minus the signal that killed the process.
  int wait();

 private:
  int pid_ = -1;
  FileDescriptor lines_;
};

}  // namespace tessera::test
