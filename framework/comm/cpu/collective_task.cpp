#include <tessera/framework/comm/cpu/collective_task.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/internal/hash.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::detail {
namespace {

/// Segments are small enough to stay in a core's cache until they are reduced.
constexpr int64_t max_segment_bytes = int64_t{512} << 10;
constexpr int64_t min_segment_bytes = int64_t{64} << 10;
/// Segments of one rank that are received ahead of the one being reduced.
constexpr int64_t segments_in_flight = 3;

/// Returns the number of elements of a segment (the last may have fewer): half the tensor's, within
/// the limits above, so that tensors of medium size have two segments.
int64_t segment_elements(const at::Tensor& tensor) {
  const int64_t bytes =
      std::clamp(static_cast<int64_t>(tensor.nbytes()) / 2, min_segment_bytes, max_segment_bytes);
  return bytes / 64 * 64 / tensor.element_size();
}

}  // namespace

int64_t segments(const at::Tensor& tensor) {
  const int64_t elements = segment_elements(tensor);
  return (tensor.numel() + elements - 1) / elements;
}

at::Tensor segment(const at::Tensor& tensor, int64_t index) {
  const int64_t elements = segment_elements(tensor), begin = index * elements;
  return tensor.narrow(0, begin, std::min(elements, tensor.numel() - begin));
}

void ExchangeTask::send(int to, const at::Tensor& tensor) {
  if (tensor.numel() > 0) sends_.push_back({to, tensor.contiguous(), at::Tensor()});
}

void ExchangeTask::recv(int from, const at::Tensor& tensor) {
  if (tensor.numel() == 0) return;
  if (tensor.is_contiguous()) {
    recvs_.push_back({from, tensor, at::Tensor()});
  } else {
    recvs_.push_back({from, at::empty(tensor.sizes(), tensor.options()), tensor});
  }
}

void ExchangeTask::start() {
  // Receives first: a peer can send at once if the receive is posted.
  for (const Message& message : recvs_) {
    const size_t bytes = message.tensor.nbytes();
    transfers_.push_back(
        transport_.recv(message.rank, mix(tag_, bytes), message.tensor.mutable_data_ptr(), bytes));
  }
  for (const Message& message : sends_) {
    const size_t bytes = message.tensor.nbytes();
    transfers_.push_back(
        transport_.send(message.rank, mix(tag_, bytes), message.tensor.const_data_ptr(), bytes));
  }
}

void ExchangeTask::finish() {
  for (const TransferPtr& transfer : transfers_) transfer->wait();
  transfers_.clear();
  for (const Message& message : recvs_) {
    if (message.target.defined()) message.target.copy_(message.tensor);
  }
}

void SegmentedReduce::start() {
  for (int64_t i = 0; i < segments_in_flight; ++i) post_if_any(i);
  for (size_t r = 0; r < outputs_.others.size(); ++r) {
    if (r == outputs_.me) continue;
    for (int64_t i = 0; i < segments(outputs_.others[r]); ++i) {
      const at::Tensor target = segment(outputs_.others[r], i);
      transfers_.push_back(transport_.recv(outputs_.ranks[r],
                                           tag_of(SegmentPurpose::result, target),
                                           target.mutable_data_ptr(), target.nbytes()));
    }
  }
  for (size_t next = 1; next < outputs_.ranks.size(); ++next) {
    send_addends((outputs_.me + next) % outputs_.ranks.size());
  }
}

void SegmentedReduce::finish() {
  for (int64_t i = 0; i < segments(outputs_.result); ++i) {
    reduce(i);
    post_if_any(i + segments_in_flight);
    if (outputs_.others.empty()) continue;
    for (size_t r = 0; r < outputs_.ranks.size(); ++r) {
      if (r != outputs_.me) send(r, SegmentPurpose::result, segment(outputs_.result, i));
    }
  }
  for (const TransferPtr& transfer : transfers_) transfer->wait();
  transfers_.clear();
}

void SegmentedReduce::post_if_any(int64_t index) {
  if (index < segments(outputs_.result)) post(index);
}

uint64_t SegmentedReduce::tag_of(SegmentPurpose purpose, const at::Tensor& tensor) const {
  return mix(mix(tag_, static_cast<uint64_t>(purpose)), tensor.nbytes());
}

void SegmentedReduce::send(size_t to, SegmentPurpose purpose, const at::Tensor& tensor) {
  transfers_.push_back(transport_.send(outputs_.ranks[to], tag_of(purpose, tensor),
                                       tensor.const_data_ptr(), tensor.nbytes()));
}

ReduceTask::ReduceTask(Transport& transport, uint64_t tag, ReduceBuffers buffers)
    : SegmentedReduce(transport, tag, std::move(static_cast<ReduceOutputs&>(buffers))),
      addends_(std::move(buffers.addends)),
      arriving_(static_cast<size_t>(segments(outputs_.result))) {}

void ReduceTask::send_addends(size_t to) {
  for (int64_t i = 0; i < segments(addends_[to]); ++i) {
    send(to, SegmentPurpose::addend, segment(addends_[to], i));
  }
}

void ReduceTask::post(int64_t index) {
  std::vector<TransferPtr>& list = arriving_[static_cast<size_t>(index)];
  const at::Tensor result = segment(outputs_.result, index);
  const uint64_t tag = tag_of(SegmentPurpose::addend, result);
  for (size_t r = 0; r < outputs_.ranks.size(); ++r) {
    list.push_back(nullptr);
    if (r == outputs_.me) continue;
    list.back() =
        transport_.recv(outputs_.ranks[r], tag, result.nbytes(),
                        [this, r, index](const std::byte* data, size_t offset, size_t count) {
                          add(r, index, data, offset, count);
                        });
  }
}

void ReduceTask::reduce(int64_t index) {
  std::vector<TransferPtr>& list = arriving_[static_cast<size_t>(index)];
  for (size_t r = 0; r < list.size(); ++r) {
    if (r != outputs_.me) {
      list[r]->wait();
    } else if (r > 1) {
      at::Tensor sum = segment(outputs_.result, index);
      reduce_into(outputs_.kind, sum, segment(addends_[r], index));
    }
  }
  list.clear();
}

void ReduceTask::add(size_t from, int64_t index, const std::byte* data, size_t offset,
                     size_t bytes) {
  const int64_t size = outputs_.result.element_size();
  const auto slice = [&](const at::Tensor& tensor) {
    return segment(tensor, index).narrow(0, int64_t(offset) / size, int64_t(bytes) / size);
  };
  at::Tensor sum = slice(outputs_.result);
  const at::Tensor theirs =
      at::from_blob(const_cast<std::byte*>(data), {int64_t(bytes) / size}, sum.options());
  // The first reduction needs no copy if one of its two inputs is this rank's.
  const size_t first = outputs_.me == 0 ? 1 : 0;
  if (from == first && outputs_.me == 0) {
    reduce_out(outputs_.kind, sum, slice(addends_[outputs_.me]), theirs);
  } else if (from == first && outputs_.me == 1) {
    reduce_out(outputs_.kind, sum, theirs, slice(addends_[outputs_.me]));
  } else if (from == first) {
    sum.copy_(theirs);
  } else {
    reduce_into(outputs_.kind, sum, theirs);
  }
}

}  // namespace tessera::detail
