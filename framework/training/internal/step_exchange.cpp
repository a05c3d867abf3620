#include <tessera/framework/training/internal/step_exchange.hpp>

#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/hash.hpp>
#include <tessera/framework/base/internal/out_of_memory.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/comm/dtype_name.hpp>

namespace tessera::detail {

namespace {

/// Calls visit(name, shape, dtype) for each array of a batch.
template <class Visit>
void visit_arrays(const Examples& batch, const Visit& visit) {
  for (const auto& x : batch.placed_x) visit("x", at::IntArrayRef(x.shape()), x.dtype());
  for (const auto& x : batch.x) visit("x", x.sizes(), x.scalar_type());
  for (const auto& y : batch.y) visit("y", y.sizes(), y.scalar_type());
  for (const auto& w : batch.sample_weight) visit("sample_weight", w.sizes(), w.scalar_type());
}

/// Leaves out the batch axis.
at::IntArrayRef row_of(at::IntArrayRef shape) { return shape.slice(shape.empty() ? 0 : 1); }

}  // namespace

uint64_t batch_signature(const Examples& batch) {
  uint64_t hash = mix(0, static_cast<uint64_t>(batch.rows()));
  const auto add = [&](auto number) { hash = mix(hash, static_cast<uint64_t>(number)); };
  visit_arrays(batch, [&](const char* name, at::IntArrayRef shape, at::ScalarType dtype) {
    add(name[0]);
    add(dtype);
    add(row_of(shape).size());
    for (const int64_t extent : row_of(shape)) add(extent);
  });
  return hash;
}

std::string batch_text(const Examples& batch) {
  std::string text = str(batch.rows(), " rows of");
  const char* between = " ";
  visit_arrays(batch, [&](const char* name, at::IntArrayRef shape, at::ScalarType dtype) {
    text += str(std::exchange(between, ", "), name, " ", to_string(row_of(shape).vec()), " ",
                dtype_name(dtype));
  });
  return text;
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
  StepStatus status;
  std::exception_ptr error;
  try {
    local(status);
    if (stop_) status.raise(StatusLevel::stop, "");
  } catch (const std::exception& thrown) {
    if (is_out_of_memory(thrown)) {
      // It may have left a collective that the others are in, which would wait for this process.
      communicator_of(mesh_).report_failure(thrown.what());
      throw;
    }
    error = std::current_exception();
    status.raise(StatusLevel::error, thrown.what());
  } catch (...) {
    error = std::current_exception();
    status.raise(StatusLevel::error, "an exception that is not a std::exception");
  }
  // If the exchange fails, the others can still read the original error.
  if (error) communicator_of(mesh_).report_failure(status.reason());
  try {
    status.exchange(mesh_);
  } catch (...) {
    // Prefer the local error: it may be why the others are gone.
    if (error) std::rethrow_exception(error);
    throw;
  }
  if (error) std::rethrow_exception(error);
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
