#pragma once

#include <cstdint>
#include <vector>

#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// A part of a tensor that a device sends to a process.
struct TransferPiece {
  int64_t source = 0;            ///< global id of the device that sends
  int64_t target = 0;            ///< global id of the device that it is for
  int from = 0, to = 0;          ///< the ranks that hold them
  std::vector<Interval> region;  ///< global indices per axis, none of them empty
};

/// Returns what is sent between devices, so that those of `to` get their shards of a value that
/// those of `from` hold, its shape and layouts given: each device the shard of the device at its
/// own coordinates, if both are of views of one mesh and that shard contains it; else pieces of the
/// nearest devices that have them. A process gets equal shards of its devices once. A pure function
/// of the arguments and of the meshes' hostings: equal on every process. Throws MeshError if no
/// device of `from` has an element that is needed.
std::vector<TransferPiece> plan_transfer(const Shape& shape, const Layout& from, const Layout& to);

/// Returns the layout in which a value arrives that is to be in layout `to`: what several devices
/// would receive in full, each receives a share of, and gathers the rest from the others.
Layout arriving_layout(const Shape& shape, const Layout& from, const Layout& to);

/// A value on its way to another mesh, usually another view of its mesh. Only processes with
/// devices of one of the two take part; others may make one, too. The processes of either mesh make
/// its transfers in one order with respect to its collectives; nothing else is ordered, except that
/// between any two processes both make the transfers of one direction in the same order.
class ValueTransfer {
 public:
  /// Begins to send the shards that this process holds, and to receive those that it is to hold.
  /// A partial sum is reduced before. Throws LayoutError for a layout of another rank, MeshError if
  /// the value's mesh lacks elements that the target needs.
  ValueTransfer(const DTensor& value, const Layout& layout);
  /// Waits for what this process receives, and returns the value in the target layout. Throws
  /// CommError.
  DTensor finish();

 private:
  void start(const DTensor& value);
  at::Tensor assemble(const BlockInfo& block) const;

  Layout layout_;
  DTensor result_;  ///< if it stays on its mesh, or is done
  DTensor source_;  ///< if this process receives nothing of others
  ShardingPtr arriving_;
  std::vector<TransferPiece> pieces_;  ///< that this process gets
  std::vector<at::Tensor> received_;   ///< one for each of them
  WorkPtr work_;
};

/// Copies a value to another mesh in the given layout; on its own mesh a relayout.
DTensor transfer_value(const DTensor& value, const Layout& layout);

}  // namespace tessera::detail
