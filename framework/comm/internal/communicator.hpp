#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/mesh/layout.hpp>

namespace tessera::detail {

/// The members of one collective: the coordinates along `dims` (first listed most significant) at
/// fixed coordinates elsewhere. Neighbouring devices of one process may stand as one member.
struct Group {
  std::vector<int> dims;       ///< mesh dimensions, ordered
  std::vector<int> owner;      ///< rank that holds each member
  std::vector<int64_t> local;  ///< members held by this process, ascending
  int64_t size() const { return static_cast<int64_t>(owner.size()); }
  bool is_local() const { return local.size() == owner.size(); }
};

/// A collective as every rank of its mesh sees it: facts that all of them share.
struct CollectiveCall {
  CommOp op = CommOp::all_reduce;
  const Mesh& mesh;
  DimMask dims = 0;  ///< mesh dimensions that it works over
  at::ScalarType dtype = at::kFloat;
  const Shape& shape;  ///< shape of the whole value
  Reduce kind = Reduce::sum;
  int64_t axis = -1;     ///< gathered, scattered, or left by all_to_all
  int64_t to_axis = -1;  ///< that all_to_all cuts instead
};

/// A collective under way. A null WorkPtr is one that is done.
class Work {
 public:
  virtual ~Work() = default;
  /// Blocks until the results may be read. Throws CommError when it failed or was aborted.
  virtual void wait() = 0;
  virtual bool done() const = 0;
};
using WorkPtr = std::shared_ptr<Work>;

/// Waits where there is something to wait for.
void wait(const WorkPtr& work);

/// Carries collectives of a mesh: `local` inside a process, Gloo and NCCL between them. Every
/// process of a group calls the same operations in the same order, from one thread. Tensors named
/// `parts` are this process's, one for each of group.local in order (for reductions one at least:
/// absent addends are left out); they are read, never written. Results are fresh memory, or a part
/// where that already is the result, and may be read once the work is done. Throws CommError once
/// aborted. What begin() told of last is what they belong to.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual std::string name() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Told before every collective, by every rank of the mesh in the same order, whether or not this
  /// process holds a part of it. What it is for is CommLabel::current(). Engines between processes
  /// compare the calls of all ranks here. Throws CommError, on every rank, where they differ.
  virtual void begin(const CollectiveCall& /*call*/) {}
  /// Told when a step begins: how many were begun before, and a hash of its global batch's shapes
  /// and dtypes.
  virtual void begin_step(int64_t /*step*/, uint64_t /*form*/) {}
  /// Over all calls of begin() so far: equal on ranks that made the same ones.
  virtual uint64_t calls_hash() const { return 0; }
  /// The texts that all ranks gave, by rank: returns once each has called it with this key, the
  /// n-th call of a key on one rank answering the n-th on the others. Needs no order with other
  /// calls and may be made on any thread. Throws CommError once aborted.
  virtual std::vector<std::string> gather(const std::string& key, const std::string& text) = 0;
  /// Keeps why this process is about to leave, for the others to read.
  virtual void report_failure(const std::string& /*what*/) {}

  /// Reduction of all members' parts, all of one shape; the same tensor for every local member.
  virtual WorkPtr all_reduce(const Group& group, Reduce kind, const std::vector<at::Tensor>& parts,
                             at::Tensor& out) = 0;
  /// Members' parts joined along `axis` in member order; `counts` are their extents there, which
  /// may differ or be 0.
  virtual WorkPtr all_gather(const Group& group, int64_t axis, const std::vector<int64_t>& counts,
                             const std::vector<at::Tensor>& parts, at::Tensor& out) = 0;
  /// Reduction of all members' parts, of which member m gets the interval `pieces[m]` of `axis`,
  /// counted from the parts' beginning.
  virtual WorkPtr reduce_scatter(const Group& group, Reduce kind, int64_t axis,
                                 const std::vector<Interval>& pieces,
                                 const std::vector<at::Tensor>& parts,
                                 std::vector<at::Tensor>& out) = 0;
  /// send[i][m] goes from local member i to member m; recv[i][m], given with its shape, is filled
  /// with what member m sent to local member i. Undefined tensors are not sent.
  virtual WorkPtr all_to_all(const Group& group, const std::vector<std::vector<at::Tensor>>& send,
                             std::vector<std::vector<at::Tensor>>& recv) = 0;
  /// Makes collectives under way and to come throw CommError with `reason`, on every rank that can
  /// be reached.
  virtual void abort(const std::string& reason) = 0;
};

/// a reduced with b in place of a.
void reduce_into(Reduce kind, at::Tensor& a, const at::Tensor& b);
/// The value that changes nothing: 0, or the lowest or highest of the dtype.
at::Tensor reduce_identity(Reduce kind, at::IntArrayRef shape, at::TensorOptions options);
/// All tensors reduced, in order; a single one is returned as it is.
at::Tensor reduce_all(Reduce kind, const std::vector<at::Tensor>& parts);

/// The communicator of one process that holds every device of its meshes.
std::shared_ptr<Communicator> local_communicator();

/// The mesh's communicator, or the local one.
Communicator& communicator_of(const Mesh& mesh);

/// Whether this process is the one of its mesh that prints and writes files.
bool is_first_rank(const Mesh& mesh);

/// Members along `dims`, with `members[d]` of them along mesh dimension d, through the coordinates
/// that this process holds elsewhere. Throws MeshError unless rank r of n holds the devices
/// shard_interval(mesh.size(), n, r).
Group make_group(const Mesh& mesh, const std::vector<int>& dims,
                 const std::vector<int64_t>& members);

}  // namespace tessera::detail
