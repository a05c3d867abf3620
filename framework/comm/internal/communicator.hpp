#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/mesh/layout.hpp>

namespace tessera::detail {

/// The members of one collective: the coordinates along `dims`, most significant first, at fixed
/// coordinates of all other dimensions. Neighbouring devices of one process may form one member.
struct Group {
  std::vector<int> dims;       ///< mesh dimensions, ordered
  std::vector<int> owner;      ///< rank that holds each member
  std::vector<int64_t> local;  ///< members held by this process, ascending
  bool tree = false;           ///< whether reductions are in the order of tree_reduce()
  int64_t size() const { return static_cast<int64_t>(owner.size()); }
  bool is_local() const { return local.size() == owner.size(); }
};

/// A collective as every rank of its mesh sees it.
struct CollectiveCall {
  CommOp op = CommOp::all_reduce;
  const Mesh& mesh;
  DimMask dims = 0;  ///< mesh dimensions of the collective
  at::ScalarType dtype = at::kFloat;
  const Shape& shape;  ///< global shape of the value
  Reduce kind = Reduce::sum;
  int64_t axis = -1;     ///< gathered or scattered axis; the one that all_to_all unshards
  int64_t to_axis = -1;  ///< the axis that all_to_all shards instead
};

/// A tensor that is sent to a rank, or filled with what that rank sends.
struct Message {
  int rank = 0;
  at::Tensor tensor;
};

/// A collective in progress. A null WorkPtr is a finished one.
class Work {
 public:
  virtual ~Work() = default;
  /// Blocks until the results may be read. Throws CommError when it failed or was aborted.
  virtual void wait() = 0;
  virtual bool done() const = 0;
};
using WorkPtr = std::shared_ptr<Work>;

/// Waits for `work` unless it is null.
void wait(const WorkPtr& work);

/// A value that an all-gather concatenates.
struct GatheredValue {
  int64_t axis = 0;
  std::vector<int64_t> counts;  ///< the members' extents along the axis; they may differ or be 0
  std::vector<at::Tensor> inputs;
  at::Tensor out = {};  ///< the inputs of all members, in member order
};

/// A value that is reduced and scattered.
struct ScatteredValue {
  int64_t axis = 0;
  std::vector<Interval> intervals;  ///< each member's part, relative to the beginning of the inputs
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> out = {};  ///< the sums of this process's members' parts
};

/// Runs the collectives of a mesh: `local` inside a process, Gloo and NCCL between processes. Every
/// process of a group calls the same operations in the same order, from one thread. `inputs` are
/// the tensors of this process, one for each member in group.local, in that order; they are read,
/// never written. Reductions may leave out members without an input, or, if Group::tree, pass
/// undefined tensors for them, but need at least one input.
/// Results are new memory, or an input that already is the result, and may be read once the work is
/// done. Operations belong to the last call of begin(), and throw CommError once aborted.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual std::string name() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Called before every collective, by every rank of the mesh in the same order, whether or not
  /// the rank holds a block of it. CommLabel::current() names its layer or weight. Communicators
  /// between processes compare the calls of all ranks here. Throws CommError, on every rank, if
  /// they differ.
  virtual void begin(const CollectiveCall& /*call*/) {}
  /// Called at the beginning of each step, with the number of earlier steps and a hash of the
  /// shapes and dtypes of its global batch.
  virtual void begin_step(int64_t /*step*/, uint64_t /*signature*/) {}
  /// Returns a hash of all calls of begin() so far, equal on ranks that made the same calls.
  virtual uint64_t calls_hash() const { return 0; }
  /// Returns the texts of all ranks, by rank, once each has called it with this key: the n-th call
  /// of a key on one rank matches the n-th on the others. Calls need no order with respect to other
  /// operations and may come from any thread. Throws CommError once aborted.
  virtual std::vector<std::string> gather(const std::string& key, const std::string& text) = 0;
  /// Stores why this process is about to leave, for the others to read.
  virtual void report_failure(const std::string& /*what*/) {}

  /// Reduces all members' inputs, which have one shape; the result is one tensor for all local
  /// members.
  virtual WorkPtr all_reduce(const Group& group, Reduce kind, const std::vector<at::Tensor>& inputs,
                             at::Tensor& out) = 0;
  /// Concatenates the members' inputs of each value, in one exchange. The values have one dtype and
  /// are on one kind of device.
  virtual WorkPtr all_gather(const Group& group, std::span<GatheredValue> values) = 0;
  /// Reduces all members' inputs of each value, in one exchange; each member gets its part. The
  /// values have one dtype and are on one kind of device.
  virtual WorkPtr reduce_scatter(const Group& group, Reduce kind,
                                 std::span<ScatteredValue> values) = 0;
  /// Sends send[i][m] from local member i to member m, and fills recv[i][m], which the caller
  /// creates with its shape, with what member m sends to local member i. Undefined tensors are not
  /// sent.
  virtual WorkPtr all_to_all(const Group& group, const std::vector<std::vector<at::Tensor>>& send,
                             std::vector<std::vector<at::Tensor>>& recv) = 0;
  /// Sends tensors to other ranks and fills those that others send, beside the collectives, and
  /// without begin(): only the ranks that send or receive call it. Sends never block, and receives
  /// are posted at once; the work is that of the receives. Messages from one rank to another are
  /// matched by their order alone, which must be the same on both, as must op, dtype, shape and
  /// dimensions of `call`; others throw CommError. No tensor is empty.
  virtual WorkPtr exchange(const CollectiveCall& call, const std::vector<Message>& sends,
                           const std::vector<Message>& recvs) = 0;
  /// Makes current and future collectives throw CommError with `reason`, on every rank that can be
  /// reached.
  virtual void abort(const std::string& reason) = 0;
};

/// Reduces a and b into `out`, which may be one of them.
void reduce_out(Reduce kind, at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
/// Reduces b into a, in place.
void reduce_into(Reduce kind, at::Tensor& a, const at::Tensor& b);
/// Returns a tensor of the reduction's identity: 0, or the lowest or highest value of the dtype.
at::Tensor reduce_identity(Reduce kind, at::IntArrayRef shape, at::TensorOptions options);
/// Reduces all tensors, in order; returns a single tensor unchanged.
at::Tensor reduce_all(Reduce kind, const std::vector<at::Tensor>& inputs);

/// Returns what an exchange moves, as all of its ranks know it: "float32 (4, 8) along stage".
std::string describe_transfer(const CollectiveCall& call);

/// Returns a communicator for a process that holds every device of its meshes.
std::shared_ptr<Communicator> local_communicator();

/// Returns the mesh's communicator, or the local one if it has none.
Communicator& communicator_of(const Mesh& mesh);

/// Whether this process is the first of the mesh, which prints and writes files.
bool is_first_rank(const Mesh& mesh);

/// Returns the rank that holds a device of the mesh, by the mesh's hosting; without one, rank r of
/// n holds the devices shard_interval(mesh.size(), n, r).
int owner_of(const Mesh& mesh, int64_t device);
/// Returns the global ids of the devices that a rank holds, ascending.
std::vector<int64_t> devices_of(const Mesh& mesh, int rank);
/// Whether all processes of the mesh hold boxes of one size.
bool is_evenly_hosted(const Mesh& mesh);

/// Returns the ranks that hold devices of the mesh, ascending: of a view, those of its devices.
/// Empty if all of the communicator's ranks do.
std::vector<int> ranks_of(const Mesh& mesh);

/// Returns the group along `dims`, with `members[d]` members along mesh dimension d, at this
/// process's coordinates of all other dimensions. Its reductions are in tree order in a
/// WorldSizeInvariantScope. Throws MeshError unless this process holds the devices that owner_of()
/// gives to its rank.
Group make_group(const Mesh& mesh, const std::vector<int>& dims,
                 const std::vector<int64_t>& members);

}  // namespace tessera::detail
