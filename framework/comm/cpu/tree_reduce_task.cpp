#include <tessera/framework/comm/cpu/tree_reduce_task.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

namespace tessera::detail {

TreeReduceTask::TreeReduceTask(Transport& transport, uint64_t tag, TreeReduceBuffers buffers)
    : SegmentedReduce(transport, tag, std::move(static_cast<ReduceOutputs&>(buffers))),
      positions_(std::move(buffers.positions)),
      addends_(std::move(buffers.addends)),
      arriving_(static_cast<size_t>(segments(outputs_.result))) {}

void TreeReduceTask::send_addends(size_t to) {
  for (int64_t i = 0; i < segments(addends_[to].front()); ++i) {
    for (const at::Tensor& addend : addends_[to]) {
      send(to, SegmentPurpose::addend, segment(addend, i));
    }
  }
}

/// Lists what a segment is reduced from, and receives the others' part of it.
void TreeReduceTask::post(int64_t index) {
  Arriving& arriving = arriving_[static_cast<size_t>(index)];
  const at::Tensor result = segment(outputs_.result, index);
  for (size_t r = 0; r < outputs_.ranks.size(); ++r) {
    for (size_t s = 0; s < positions_[r].size(); ++s) {
      const int64_t position = positions_[r][s];
      if (r == outputs_.me) {
        arriving.addends.push_back({position, segment(addends_[r][s], index)});
        continue;
      }
      const at::Tensor theirs = at::empty_like(result);
      arriving.transfers.push_back(transport_.recv(outputs_.ranks[r],
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
  tree_reduce(outputs_.kind, std::move(arriving.addends), segment(outputs_.result, index));
}

}  // namespace tessera::detail
