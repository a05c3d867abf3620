#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/comm/cpu/transport.hpp>
#include <tessera/framework/mesh/layout.hpp>

namespace tessera::detail {

/// One rank's share of a collective, in two halves. Both run once, under InferenceMode.
class CollectiveTask {
 public:
  virtual ~CollectiveTask() = default;
  /// Starts transfers; never blocks.
  virtual void start() = 0;
  /// Runs the rest and waits for it. Throws CommError like a Transport.
  virtual void finish() = 0;
};

/// Sends tensors to other ranks and receives tensors from them.
class ExchangeTask final : public CollectiveTask {
 public:
  ExchangeTask(Transport& transport, uint64_t tag) : transport_(transport), tag_(tag) {}
  /// Empty tensors are not sent.
  void send(int to, const at::Tensor& tensor);
  void recv(int from, const at::Tensor& tensor);
  void start() override;
  void finish() override;

 private:
  struct Message {
    int rank;
    at::Tensor tensor;  ///< contiguous
    at::Tensor target;  ///< final destination of a received tensor, if not `tensor`
  };
  Transport& transport_;
  uint64_t tag_;
  std::vector<Message> sends_, recvs_;
  std::vector<TransferPtr> transfers_;
};

/// The input and output of a ReduceOp: flat contiguous tensors of one dtype, indexed by a rank's
/// position in `ranks`.
struct ReduceBuffers {
  std::vector<int> ranks;  ///< participating ranks, ascending
  size_t me = 0;           ///< position of this rank
  Reduce kind = Reduce::sum;
  /// This rank's input to the result of each rank.
  std::vector<at::Tensor> addends;
  /// Receives the result of this rank.
  at::Tensor result;
  /// Receive the results of the other ranks; empty if those are not sent to this rank.
  std::vector<at::Tensor> others;
};

/// Whether a segment is an input of a reduction or a part of its result.
enum class SegmentPurpose : uint64_t { addend = 1, result = 2 };
/// Segments of one rank that are received ahead of the one being reduced.
inline constexpr int64_t segments_in_flight = 3;
/// Returns the number of segments in which a flat tensor is reduced.
int64_t segments(const at::Tensor& tensor);
/// Returns a segment of a flat tensor.
at::Tensor segment(const at::Tensor& tensor, int64_t index);

/// Reduce-scatters, or all-reduces if ReduceBuffers::others is set. Reduces in rank order, in
/// segments, so that one is transferred while another is reduced; for an all-reduce each reduced
/// segment is sent to the others at once.
class ReduceTask final : public CollectiveTask {
 public:
  ReduceTask(Transport& transport, uint64_t tag, ReduceBuffers buffers);
  void start() override;
  void finish() override;

 private:
  void post(int64_t index);
  void reduce(int64_t index);
  void add(size_t from, int64_t index, const std::byte* data, size_t offset, size_t bytes);
  void send(size_t to, SegmentPurpose purpose, const at::Tensor& tensor);

  Transport& transport_;
  uint64_t tag_;
  ReduceBuffers buffers_;
  /// The other ranks' input to this rank's result, by segment and rank, reduced as it arrives.
  std::vector<std::vector<TransferPtr>> arriving_;
  std::vector<TransferPtr> transfers_;
};

/// Maximum size of tensors that all ranks exchange in a single step, without a reduce-scatter
/// first.
constexpr size_t max_single_step_bytes = size_t{16} << 10;

}  // namespace tessera::detail
