#include <tessera/framework/training/internal/step_exchange.hpp>

#include <span>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/checksum.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/comm/dtype_name.hpp>

namespace tessera::detail {

std::string batch_signature(const Examples& batch) {
  std::string text = str(batch.rows(), " rows of");
  const auto add = [&](const char* name, const std::vector<int64_t>& shape, at::ScalarType dtype) {
    const Shape row(shape.begin() + (shape.empty() ? 0 : 1), shape.end());
    text +=
        str(text.ends_with("of") ? " " : ", ", name, " ", to_string(row), " ", dtype_name(dtype));
  };
  for (const auto& x : batch.placed_x) add("x", x.shape(), x.dtype());
  for (const auto& x : batch.x) add("x", x.sizes().vec(), x.scalar_type());
  for (const auto& y : batch.y) add("y", y.sizes().vec(), y.scalar_type());
  for (const auto& weight : batch.sample_weight) {
    add("sample_weight", weight.sizes().vec(), weight.scalar_type());
  }
  return text;
}

uint64_t hash_of(const std::string& text) {
  return std::stoull(xxh128(std::as_bytes(std::span(text))).substr(0, 16), nullptr, 16);
}

std::string position_text(Phase phase, int64_t epoch, int64_t step) {
  return str(phase == Phase::train ? str(" at epoch ", epoch + 1, ", ") : " at ", "step ", step);
}

Interrupted interrupted(int signal, const std::string& caller, Phase phase, const std::string& at) {
  return Interrupted(signal, caller, signal_name(signal) + at,
                     phase == Phase::train
                         ? "start it again; with a checkpoint (--resume, BackupAndRestore) "
                           "it resumes there"
                         : "start it again");
}

void StepExchange::do_on_all_ranks(const std::function<void()>& local) {
  exchange([&](StepStatus&) { local(); });
}

StepStatus StepExchange::exchange(const std::function<void(StepStatus&)>& local) {
  const StepStatus status = all_reduce_status(mesh_, [&](StepStatus& own) {
    local(own);
    if (stop_) own.raise(StatusLevel::stop, "");
  });
  if (status.status() == StatusLevel::error) {
    throw CommError("step", "every process goes on", status.error_text(), "");
  }
  stop_ = status.status() >= StatusLevel::stop;
  return status;
}

void StepExchange::check(const std::string& caller, Phase phase, const FitPosition& position,
                         const StepStatus& status) const {
  const std::string on = mesh_.is_local() ? "" : str(" on rank ", status.rank());
  const std::string at = position_text(phase, position.epoch, position.step);
  if (status.status() == StatusLevel::non_finite) {
    throw StateError(caller, "gradients stay finite",
                     str("infinite numbers or NaN in the gradient of ", status.reason(), on, at),
                     "lower the learning rate, or look for bad values in the data");
  }
  if (status.status() == StatusLevel::save) {
    throw interrupted(std::stoi(status.reason()), caller, phase, on + at);
  }
}

}  // namespace tessera::detail
