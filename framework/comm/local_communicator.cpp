#include <mutex>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/communicator.hpp>

namespace tessera {
namespace {

/// All members are in this process: reductions and copies between its own tensors.
class LocalCommunicator final : public Communicator {
 public:
  std::string name() const override { return "local"; }
  int rank() const override { return 0; }
  int size() const override { return 1; }

  std::vector<std::string> gather(const std::string&, const std::string& text) override {
    check_alive();
    return {text};
  }

  WorkPtr all_reduce(const Group& group, Reduce kind, const std::vector<at::Tensor>& parts,
                     at::Tensor& out) override {
    check(group);
    out = reduce_all(kind, parts);
    return nullptr;
  }

  WorkPtr all_gather(const Group& group, int64_t axis, const std::vector<int64_t>&,
                     const std::vector<at::Tensor>& parts, at::Tensor& out) override {
    check(group);
    out = parts.size() == 1 ? parts[0] : at::cat(parts, axis);
    return nullptr;
  }

  WorkPtr reduce_scatter(const Group& group, Reduce kind, int64_t axis,
                         const std::vector<Interval>& pieces, const std::vector<at::Tensor>& parts,
                         std::vector<at::Tensor>& out) override {
    check(group);
    const at::Tensor whole = reduce_all(kind, parts);
    out.clear();
    for (Interval piece : pieces) out.push_back(whole.narrow(axis, piece.lo, piece.size()));
    return nullptr;
  }

  WorkPtr all_to_all(const Group& group, const std::vector<std::vector<at::Tensor>>& send,
                     std::vector<std::vector<at::Tensor>>& recv) override {
    check(group);
    for (size_t to = 0; to < recv.size(); ++to) {
      for (size_t from = 0; from < send.size(); ++from) {
        if (send[from][to].defined()) recv[to][from] = send[from][to];
      }
    }
    return nullptr;
  }

  WorkPtr broadcast(const Group& group, int64_t, at::Tensor&) override {
    check(group);
    return nullptr;
  }

  WorkPtr send(int to, const at::Tensor&) override { return no_peer(to); }
  WorkPtr recv(int from, at::Tensor&) override { return no_peer(from); }
  void barrier() override { check_alive(); }

  void abort(const std::string& reason) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    reason_ = reason;
  }

 private:
  void check_alive() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!reason_.empty()) throw CommError("local", "the communicator was aborted", reason_, "");
  }

  void check(const Group& group) {
    check_alive();
    if (!group.is_local()) {
      throw CommError("local", "a mesh over several processes needs a communicator between them",
                      str(group.local.size(), " of ", group.size(), " members are here"),
                      "make the mesh with create_mesh_part and its communicator");
    }
  }

  WorkPtr no_peer(int rank) {
    throw CommError("local", "a single process has no other rank", str("rank ", rank), "");
  }

  std::mutex mutex_;
  std::string reason_;
};

}  // namespace

std::shared_ptr<Communicator> local_communicator() { return std::make_shared<LocalCommunicator>(); }

}  // namespace tessera
