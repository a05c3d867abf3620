#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/comm/cpu/transport.hpp>
#include <tessera/framework/mesh/layout.hpp>

namespace tessera::detail {

/// What one rank does of a collective, in two halves. Both run once, under InferenceMode.
class CollectiveTask {
 public:
  virtual ~CollectiveTask() = default;
  /// Starts transfers; never blocks.
  virtual void start() = 0;
  /// Ends the rest. Throws CommError as a channel does.
  virtual void finish() = 0;
};

/// Tensors that go to other ranks and come from them.
class MoveOp final : public CollectiveTask {
 public:
  MoveOp(Transport& channel, uint64_t tag) : channel_(channel), tag_(tag) {}
  /// Empty tensors do not travel.
  void send(int to, const at::Tensor& tensor);
  void recv(int from, const at::Tensor& tensor);
  void start() override;
  void finish() override;

 private:
  struct Move {
    int rank;
    at::Tensor tensor;  ///< contiguous
    at::Tensor place;   ///< where a received tensor goes in the end, if elsewhere
  };
  Transport& channel_;
  uint64_t tag_;
  std::vector<Move> sends_, recvs_;
  std::vector<TransferPtr> transfers_;
};

/// What a ReduceOp reduces: flat contiguous tensors of one dtype, indexed by a rank's place among
/// `ranks`.
struct ReduceParts {
  std::vector<int> ranks;  ///< that take part, ascending
  size_t me = 0;           ///< place of this rank
  Reduce kind = Reduce::sum;
  /// This rank's addends to the result of each rank.
  std::vector<at::Tensor> addends;
  /// Where the result of this rank goes.
  at::Tensor result;
  /// Where the results of the others go, as they are sent to this rank; empty: they are not.
  std::vector<at::Tensor> others;
};

/// Reduces, for each rank, what all of them hold for it, in the order of the ranks: in segments, so
/// that one travels while another is reduced, and each that is ready goes to the others.
class ReduceOp final : public CollectiveTask {
 public:
  ReduceOp(Transport& channel, uint64_t tag, ReduceParts parts);
  void start() override;
  void finish() override;

 private:
  void post(int64_t index);
  void reduce(int64_t index);
  void add(size_t from, int64_t index, const std::byte* data, size_t offset, size_t bytes);
  void send(size_t to, uint64_t tag, const at::Tensor& tensor);

  Transport& channel_;
  uint64_t tag_;
  ReduceParts parts_;
  /// The addends to this rank's result, by segment and rank, read as they arrive.
  std::vector<std::vector<TransferPtr>> arriving_;
  std::vector<TransferPtr> transfers_;
};

/// Tensors of at most so many bytes are exchanged in one round, by all with all.
constexpr size_t one_round_bytes = size_t{16} << 10;

}  // namespace tessera::detail
