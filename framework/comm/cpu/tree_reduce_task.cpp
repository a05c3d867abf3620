#include <tessera/framework/comm/cpu/tree_reduce_task.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/internal/hash.hpp>

namespace tessera::detail {

TreeReduceTask::TreeReduceTask(Transport& transport, uint64_t tag, TreeReduceBuffers buffers)
    : transport_(transport),
      tag_(tag),
      buffers_(std::move(buffers)),
      arriving_(static_cast<size_t>(segments(buffers_.result))) {}

void TreeReduceTask::start() {
  for (int64_t i = 0; i < segments_in_flight; ++i) post(i);
  for (size_t r = 0; r < buffers_.others.size(); ++r) {
    if (r == buffers_.me) continue;
    for (int64_t i = 0; i < segments(buffers_.others[r]); ++i) {
      const at::Tensor target = segment(buffers_.others[r], i);
      transfers_.push_back(transport_.recv(buffers_.ranks[r],
                                           tag_of(SegmentPurpose::result, target),
                                           target.mutable_data_ptr(), target.nbytes()));
    }
  }
  for (size_t next = 1; next < buffers_.ranks.size(); ++next) {
    const size_t r = (buffers_.me + next) % buffers_.ranks.size();
    const std::vector<at::Tensor>& addends = buffers_.addends[r];
    for (int64_t i = 0; i < segments(addends.front()); ++i) {
      for (const at::Tensor& addend : addends) send(r, SegmentPurpose::addend, segment(addend, i));
    }
  }
}

void TreeReduceTask::finish() {
  for (int64_t i = 0; i < segments(buffers_.result); ++i) {
    reduce(i);
    post(i + segments_in_flight);
    if (buffers_.others.empty()) continue;
    for (size_t r = 0; r < buffers_.ranks.size(); ++r) {
      if (r != buffers_.me) send(r, SegmentPurpose::result, segment(buffers_.result, i));
    }
  }
  for (const TransferPtr& transfer : transfers_) transfer->wait();
  transfers_.clear();
}

/// Lists what a segment is reduced from, and receives the others' part of it.
void TreeReduceTask::post(int64_t index) {
  if (index >= segments(buffers_.result)) return;
  Arriving& arriving = arriving_[static_cast<size_t>(index)];
  const at::Tensor result = segment(buffers_.result, index);
  for (size_t r = 0; r < buffers_.ranks.size(); ++r) {
    for (size_t s = 0; s < buffers_.positions[r].size(); ++s) {
      const int64_t position = buffers_.positions[r][s];
      if (r == buffers_.me) {
        arriving.addends.push_back({position, segment(buffers_.addends[r][s], index)});
        continue;
      }
      const at::Tensor theirs = at::empty_like(result);
      arriving.transfers.push_back(transport_.recv(buffers_.ranks[r],
                                                   tag_of(SegmentPurpose::addend, theirs),
                                                   theirs.mutable_data_ptr(), theirs.nbytes()));
      arriving.addends.push_back({position, theirs, /*writable=*/true});
    }
  }
  std::sort(arriving.addends.begin(), arriving.addends.end(),
            [](const TreeAddend& a, const TreeAddend& b) { return a.position < b.position; });
}

void TreeReduceTask::reduce(int64_t index) {
  Arriving arriving = std::exchange(arriving_[static_cast<size_t>(index)], {});
  for (const TransferPtr& transfer : arriving.transfers) transfer->wait();
  tree_reduce(buffers_.kind, std::move(arriving.addends), segment(buffers_.result, index));
}

uint64_t TreeReduceTask::tag_of(SegmentPurpose purpose, const at::Tensor& tensor) const {
  return mix(mix(tag_, static_cast<uint64_t>(purpose)), tensor.nbytes());
}

void TreeReduceTask::send(size_t to, SegmentPurpose purpose, const at::Tensor& tensor) {
  transfers_.push_back(transport_.send(buffers_.ranks[to], tag_of(purpose, tensor),
                                       tensor.const_data_ptr(), tensor.nbytes()));
}

}  // namespace tessera::detail
