#include <tessera/framework/comm/internal/local_communicator.hpp>

#include <memory>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/internal/collective_bytes.hpp>
#include <tessera/framework/comm/internal/tree_reduce.hpp>

namespace tessera::detail {

std::vector<std::string> LocalCommunicator::gather(const std::string&, const std::string& text) {
  check_alive();
  return {text};
}

WorkPtr LocalCommunicator::all_reduce(const Group& group, Reduce kind,
                                      const std::vector<at::Tensor>& inputs, at::Tensor& out) {
  const ProfileSpan span(SpanKind::collective, "all_reduce", reduced_bytes(inputs));
  check(group);
  out = reduce_inputs(group, kind, inputs);
  return nullptr;
}

WorkPtr LocalCommunicator::all_gather(const Group& group, std::span<GatheredValue> values) {
  const ProfileSpan span(SpanKind::collective, "all_gather", gathered_bytes(values));
  check(group);
  for (GatheredValue& value : values) {
    if (value.inputs.size() == 1) {
      value.out = value.inputs[0];
      continue;
    }
    const ProfileSpan work(SpanKind::aten, "cat");
    value.out = at::cat(value.inputs, value.axis);
  }
  return nullptr;
}

WorkPtr LocalCommunicator::reduce_scatter(const Group& group, Reduce kind,
                                          std::span<ScatteredValue> values) {
  const ProfileSpan span(SpanKind::collective, "reduce_scatter", scattered_bytes(values));
  for (ScatteredValue& value : values) {
    at::Tensor reduced;
    wait(all_reduce(group, kind, value.inputs, reduced));
    value.out.clear();
    for (Interval interval : value.intervals) {
      value.out.push_back(reduced.narrow(value.axis, interval.lo, interval.size()));
    }
  }
  return nullptr;
}

WorkPtr LocalCommunicator::all_to_all(const Group& group,
                                      const std::vector<std::vector<at::Tensor>>& send,
                                      std::vector<std::vector<at::Tensor>>& recv) {
  const ProfileSpan span(SpanKind::collective, "all_to_all", sent_bytes(send));
  check(group);
  for (size_t to = 0; to < recv.size(); ++to) {
    for (size_t from = 0; from < send.size(); ++from) {
      if (send[from][to].defined()) recv[to][from] = send[from][to];
    }
  }
  return nullptr;
}

WorkPtr LocalCommunicator::exchange(const CollectiveCall&, const std::vector<Message>& sends,
                                    const std::vector<Message>& recvs) {
  check_alive();
  throw CommError("local", "messages are between processes",
                  str(sends.size(), " to send and ", recvs.size(), " to receive"),
                  "create the mesh with create_distributed_mesh()");
}

void LocalCommunicator::abort(const std::string& reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  reason_ = reason;
}

void LocalCommunicator::check_alive() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!reason_.empty()) throw CommError("local", "the communicator was aborted", reason_, "");
}

void LocalCommunicator::check(const Group& group) {
  check_alive();
  if (!group.is_local()) {
    throw CommError("local", "a mesh over several processes needs a communicator between them",
                    str(group.local.size(), " of ", group.size(), " members are here"),
                    "make the mesh with create_mesh_part and its communicator");
  }
}

std::shared_ptr<Communicator> local_communicator() { return std::make_shared<LocalCommunicator>(); }

}  // namespace tessera::detail
