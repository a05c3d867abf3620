#include <tessera/framework/comm/nccl/nccl_groups.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/hex.hpp>

namespace tessera::detail {
namespace {

/// Encodes an id as text, since ids are exchanged through `gather`.
std::string text_of(const NcclId& id) { return to_hex({id.internal, sizeof id.internal}); }

NcclId from_hex(const std::string& text) {
  NcclId id{};
  if (text.size() != 2 * sizeof id.internal) {
    throw CommError("nccl", "rank 0 sends the id of the communicator",
                    str("a text of ", text.size(), " bytes"),
                    "start the same program on all ranks");
  }
  for (size_t i = 0; i < sizeof id.internal; ++i) {
    id.internal[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return id;
}

}  // namespace

NcclGroups::NcclGroups(const NcclOptions& options, const Gpu& device)
    : rank_(options.rank),
      device_(device),
      stream_(device.communication.native_handle()),
      communicators_(std::make_shared<NcclCommunicators>(options.on_error)) {
  const std::string mine = rank_ == 0 ? text_of(communicators_->make_id()) : "";
  const NcclId id = from_hex(options.gather("nccl", mine).at(0));
  const c10::DeviceGuard guard(device.device);
  world_ = communicators_->add(id, options.size, rank_);
  std::vector<int> all_ranks(static_cast<size_t>(options.size));
  std::iota(all_ranks.begin(), all_ranks.end(), 0);
  groups_[all_ranks] = world_;
}

NcclComm* NcclGroups::of(const std::vector<int>& ranks) {
  const auto it = groups_.find(ranks);
  if (it != groups_.end()) return it->second;
  const auto position = std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin();
  const NcclId id = share_id(ranks);
  NcclComm* const comm =
      communicators_->add(id, static_cast<int>(ranks.size()), static_cast<int>(position));
  return groups_[ranks] = comm;
}

/// Sends the id of a new communicator from the first of these ranks to the others, by NCCL: a
/// gather would need all ranks, but only these know of the new group.
NcclId NcclGroups::share_id(const std::vector<int>& ranks) {
  NcclId id{};
  at::Tensor bytes = at::zeros({static_cast<int64_t>(sizeof id.internal)}, at::kByte);
  if (rank_ == ranks[0]) {
    id = communicators_->make_id();
    std::memcpy(bytes.mutable_data_ptr(), id.internal, sizeof id.internal);
  }
  bytes = bytes.to(device_.device);
  std::vector<Message> messages;
  if (rank_ != ranks[0]) messages.push_back({ranks[0], false, bytes});
  for (size_t i = 1; i < ranks.size() && rank_ == ranks[0]; ++i) {
    messages.push_back({ranks[i], true, bytes});
  }
  exchange(messages);
  const at::Tensor here = bytes.cpu();
  // An aborted exchange also ends: check before using its data.
  communicators_->check();
  std::memcpy(id.internal, here.const_data_ptr(), sizeof id.internal);
  return id;
}

void NcclGroups::exchange(const std::vector<Message>& messages) {
  const NcclLibrary& nccl = communicators_->nccl();
  communicators_->run(world_, [&] {
    for (const Message& m : messages) {
      // Both sides know the shape, so both skip an empty tensor.
      if (m.tensor.numel() == 0) continue;
      const NcclResult result = m.sends ? nccl.send(m.tensor.const_data_ptr(), m.tensor.nbytes(),
                                                    NcclType::int8, m.peer, world_, stream_)
                                        : nccl.recv(m.tensor.mutable_data_ptr(), m.tensor.nbytes(),
                                                    NcclType::int8, m.peer, world_, stream_);
      if (result != NcclResult::success && result != NcclResult::in_progress) return result;
    }
    return NcclResult::success;
  });
}

}  // namespace tessera::detail
