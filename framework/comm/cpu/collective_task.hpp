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

/// The outputs of a reduction in segments: flat contiguous tensors of one dtype. Lists by rank are
/// indexed by a rank's position in `ranks`.
struct ReduceOutputs {
  std::vector<int> ranks;  ///< participating ranks, ascending
  size_t me = 0;           ///< position of this rank
  Reduce kind = Reduce::sum;
  /// Receives the result of this rank.
  at::Tensor result;
  /// Receive the results of the other ranks; empty if those are not sent to this rank.
  std::vector<at::Tensor> others;
};

/// The input and output of a ReduceTask.
struct ReduceBuffers : ReduceOutputs {
  /// This rank's input to the result of each rank.
  std::vector<at::Tensor> addends;
};

/// Whether a segment is an input of a reduction or a part of its result.
enum class SegmentPurpose : uint64_t { addend = 1, result = 2 };
/// Returns the number of segments in which a flat tensor is reduced.
int64_t segments(const at::Tensor& tensor);
/// Returns a segment of a flat tensor.
at::Tensor segment(const at::Tensor& tensor, int64_t index);

/// Reduce-scatters, or all-reduces if ReduceOutputs::others is set, in segments, so that one is
/// transferred while another is reduced; for an all-reduce each reduced segment is sent to the
/// others at once. Its classes say in which order partial values are reduced.
class SegmentedReduce : public CollectiveTask {
 public:
  void start() final;
  void finish() final;

 protected:
  SegmentedReduce(Transport& transport, uint64_t tag, ReduceOutputs outputs)
      : transport_(transport), tag_(tag), outputs_(std::move(outputs)) {}

  /// Starts to receive the other ranks' input to a segment of the result.
  virtual void post(int64_t index) = 0;
  /// Waits for them and reduces the segment.
  virtual void reduce(int64_t index) = 0;
  /// Sends this rank's input to the result of the rank at a position.
  virtual void send_addends(size_t to) = 0;

  uint64_t tag_of(SegmentPurpose purpose, const at::Tensor& tensor) const;
  void send(size_t to, SegmentPurpose purpose, const at::Tensor& tensor);

  Transport& transport_;
  uint64_t tag_;
  ReduceOutputs outputs_;

 private:
  void post_if_any(int64_t index);

  std::vector<TransferPtr> transfers_;
};

/// Reduces in rank order.
class ReduceTask final : public SegmentedReduce {
 public:
  ReduceTask(Transport& transport, uint64_t tag, ReduceBuffers buffers);

 private:
  void post(int64_t index) override;
  void reduce(int64_t index) override;
  void send_addends(size_t to) override;
  void add(size_t from, int64_t index, const std::byte* data, size_t offset, size_t bytes);

  std::vector<at::Tensor> addends_;
  /// The other ranks' input to this rank's result, by segment and rank, reduced as it arrives.
  std::vector<std::vector<TransferPtr>> arriving_;
};

/// Maximum size of tensors that all ranks exchange in a single step, without a reduce-scatter
/// first.
constexpr size_t max_single_step_bytes = size_t{16} << 10;

}  // namespace tessera::detail
