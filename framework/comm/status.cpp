#include <tessera/framework/comm/status.hpp>

#include <exception>

#include <ATen/ATen.h>

#include <tessera/framework/comm/communicator.hpp>

namespace tessera {

void StatusWord::raise(StepStatus status, const std::string& reason) {
  if (status <= status_) return;
  status_ = status;
  reason_ = reason;
}

void StatusWord::exchange(const Mesh& mesh) {
  if (mesh.is_local()) return;
  Communicator& communicator = communicator_of(mesh);
  Group everyone;
  for (int r = 0; r < communicator.size(); ++r) everyone.owner.push_back(r);
  everyone.local = {communicator.rank()};
  // Status in the high part, the lowest rank that raised it winning in the low part.
  const int64_t ranks = communicator.size();
  const int64_t mine = static_cast<int64_t>(status_) * ranks + (ranks - 1 - communicator.rank());
  at::Tensor out;
  const at::Tensor word = at::full({}, mine, at::kLong);
  wait(communicator.all_reduce(everyone, Reduce::max, {word}, out));
  const int64_t gravest = out.item<int64_t>();
  status_ = static_cast<StepStatus>(gravest / ranks);
  rank_ = static_cast<int>(ranks - 1 - gravest % ranks);
  if (rank_ != communicator.rank()) reason_.clear();
}

StatusWord exchanged(const Mesh& mesh, const std::string& reason,
                     const std::function<void(StatusWord&)>& local) {
  StatusWord word;
  std::exception_ptr error;
  try {
    local(word);
  } catch (...) {
    error = std::current_exception();
    word.raise(StepStatus::error, reason);
  }
  word.exchange(mesh);
  if (error) std::rethrow_exception(error);
  return word;
}

}  // namespace tessera
