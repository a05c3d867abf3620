#include <tessera/framework/comm/internal/status.hpp>

#include <map>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/cluster/internal/rank_text.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::detail {
namespace {

/// All-reduces the maximum of each number over all processes.
std::vector<int64_t> all_reduce_max(const Mesh& mesh, const std::vector<int64_t>& numbers) {
  static const std::string name = "status";
  const CommLabel label(name);
  Communicator& communicator = communicator_of(mesh);
  Group all_ranks;
  for (int r = 0; r < communicator.size(); ++r) all_ranks.owner.push_back(r);
  all_ranks.local = {communicator.rank()};
  const Shape shape = {static_cast<int64_t>(numbers.size())};
  communicator.begin({.op = CommOp::all_reduce,
                      .mesh = mesh,
                      .dims = (DimMask(1) << mesh.rank()) - 1,
                      .dtype = at::kLong,
                      .shape = shape,
                      .kind = Reduce::max});
  at::Tensor out;
  wait(communicator.all_reduce(all_ranks, Reduce::max, {at::tensor(numbers, at::kLong)}, out));
  const int64_t* first = out.const_data_ptr<int64_t>();
  return {first, first + out.numel()};
}

[[noreturn]] void fail_by_calls(Communicator& communicator, int64_t hash) {
  const std::vector<std::string> texts = communicator.gather("calls", str(hash));
  // Hashes mean nothing to a reader: number the distinct sequences instead.
  std::map<std::string, size_t> numbers;
  std::vector<std::string> sequences;
  for (const std::string& text : texts) {
    sequences.push_back(str("sequence ", numbers.emplace(text, numbers.size() + 1).first->second));
  }
  throw CommError("step", "every process makes the same collectives in the same order",
                  group_by_text(sequences),
                  "look for code that depends on the rank, such as full() on one process only; "
                  "always_check compares every call");
}

}  // namespace

std::string group_by_text(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  std::map<std::string, size_t> index;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    const auto [at, fresh] = index.emplace(texts[rank], groups.size());
    if (fresh) groups.push_back({texts[rank], {}});
    groups[at->second].second.push_back(static_cast<int>(rank));
  }
  std::string all;
  for (const auto& [text, ranks] : groups) {
    all += str(all.empty() ? "" : "; ", text, " on ", rank_names(ranks));
  }
  return all;
}

std::string StepStatus::error_text() const {
  return str("an error on rank ", rank_, reason_.empty() ? "" : ": ", reason_);
}

void StepStatus::raise(StatusLevel status, const std::string& reason) {
  if (status <= status_) return;
  status_ = status;
  reason_ = reason;
}

void StepStatus::set_next_batch(int64_t rows, size_t signature) {
  min_rows_ = max_rows_ = rows;
  min_signature_ = max_signature_ = static_cast<int64_t>(signature);
}

void StepStatus::exchange(const Mesh& mesh) {
  reasons_ = {reason_};
  if (mesh.is_local()) return;
  const ProfileSpan span(SpanKind::collective, "status");
  Communicator& communicator = communicator_of(mesh);
  const StatusLevel own = status_;
  // The status is the high part; in the low part the lowest rank that raised it wins.
  const int64_t ranks = communicator.size();
  const int64_t mine = static_cast<int64_t>(own) * ranks + (ranks - 1 - communicator.rank());
  const auto hash = static_cast<int64_t>(communicator.calls_hash());
  // The maximum of ~n is ~ of the minimum of n.
  const std::vector<int64_t> all = all_reduce_max(
      mesh, {mine, hash, ~hash, max_rows_, ~min_rows_, max_signature_, ~min_signature_});
  status_ = static_cast<StatusLevel>(all[0] / ranks);
  rank_ = static_cast<int>(ranks - 1 - all[0] % ranks);
  max_rows_ = all[3];
  min_rows_ = ~all[4];
  max_signature_ = all[5];
  min_signature_ = ~all[6];
  // After an error, the failed rank may have skipped collectives.
  if (status_ != StatusLevel::error && all[1] != ~all[2]) fail_by_calls(communicator, hash);
  if (own != status_) reason_.clear();
  reasons_ = {};
  if (status_ <= StatusLevel::stop) return;
  reasons_ = communicator.gather("status", reason_);
  reason_ = reasons_[static_cast<size_t>(rank_)];
}

}  // namespace tessera::detail
