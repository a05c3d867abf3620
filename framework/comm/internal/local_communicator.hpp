#pragma once

#include <mutex>
#include <string>
#include <vector>

#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::detail {

/// The communicator inside one process, by reductions and copies of the process's own tensors.
class LocalCommunicator : public Communicator {
 public:
  std::string name() const override { return "local"; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::vector<std::string> gather(const std::string& key, const std::string& text) override;
  WorkPtr all_reduce(const Group& group, Reduce kind, const std::vector<at::Tensor>& inputs,
                     at::Tensor& out) override;
  WorkPtr all_gather(const Group& group, std::span<GatheredValue> values) override;
  WorkPtr reduce_scatter(const Group& group, Reduce kind,
                         std::span<ScatteredValue> values) override;
  WorkPtr all_to_all(const Group& group, const std::vector<std::vector<at::Tensor>>& send,
                     std::vector<std::vector<at::Tensor>>& recv) override;
  /// Throws CommError: there is no other rank.
  WorkPtr exchange(const CollectiveCall& call, const std::vector<Message>& sends,
                   const std::vector<Message>& recvs) override;
  void abort(const std::string& reason) override;

 protected:
  /// Throws CommError once aborted.
  void check_alive();
  /// Throws CommError once aborted, and for a group with members in other processes.
  void check(const Group& group);

 private:
  std::mutex mutex_;
  std::string reason_;
};

}  // namespace tessera::detail
