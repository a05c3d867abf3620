#include <tessera/framework/io/checkpoint.hpp>

#include <exception>
#include <future>
#include <iostream>
#include <thread>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/io/internal/checkpoint_restore.hpp>
#include <tessera/framework/io/internal/checkpoint_snapshot.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>

namespace tessera {

using namespace detail;

struct Checkpoint::State {
  explicit State(CheckpointParts made) : parts(std::move(made)) {}
  /// Only warns: a destructor cannot throw.
  ~State() {
    try {
      join();
    } catch (const RankFailures&) {
      // The failed process reports the reason.
    } catch (const std::exception& failure) {
      std::cerr << "Warning: a checkpoint was not saved: " << failure.what() << '\n';
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Runs `write` on a background thread on every process. If one process cannot start its thread,
  /// none starts and all throw.
  void start(const Mesh& mesh, const std::string& where, std::function<void()> write) {
    std::promise<bool> begins;
    try {
      collectively(mesh, where, [&] {
        thread =
            std::thread([this, told = begins.get_future(), write = std::move(write)]() mutable {
              if (told.get()) run(write);
              // Releases the snapshot, so that variables may reuse their memory.
              write = nullptr;
            });
      });
    } catch (...) {
      begins.set_value(false);
      if (thread.joinable()) thread.join();
      throw;
    }
    saving = true;
    begins.set_value(true);
  }
  void run(const std::function<void()>& write) {
    try {
      write();
    } catch (...) {
      error = std::current_exception();
    }
  }
  /// Waits for the background thread and throws its error.
  void join() {
    saving = false;
    if (thread.joinable()) thread.join();
    if (error) std::rethrow_exception(std::exchange(error, nullptr));
  }

  CheckpointParts parts;
  bool saving = false;  ///< the same on every process
  std::thread thread = {};
  std::exception_ptr error = nullptr;
};

Checkpoint::Checkpoint(CheckpointParts parts) : state_(std::make_shared<State>(std::move(parts))) {}
Checkpoint::Checkpoint(const ModelHandle& model)
    : Checkpoint(CheckpointParts{.owner = model, .model = &model.model()}) {}
Checkpoint::Checkpoint(Model& model) : Checkpoint(CheckpointParts{.model = &model}) {}
Checkpoint::Checkpoint(const std::vector<Variable>& variables,
                       const std::vector<OptimizerHandle>& optimizers)
    : Checkpoint(CheckpointParts{.variables = variables, .optimizers = optimizers}) {}

void Checkpoint::save(const std::string& folder, const CheckpointSaveOptions& options) {
  wait();
  const NoRecording no_recording;
  const Mesh mesh = this->mesh();
  auto snapshot = std::make_shared<CheckpointSnapshot>(state_->parts, options.about);
  std::function<void()> write = [folder, snapshot = std::move(snapshot),
                                 then = is_first_rank(mesh) ? options.then : nullptr] {
    snapshot->write(folder);
    if (then) then();
  };
  if (options.asynchronous) {
    state_->start(mesh, folder, std::move(write));
  } else {
    collectively(mesh, folder, write);
  }
}

void Checkpoint::wait() {
  if (!state_->saving) return;
  collectively(mesh(), "Checkpoint", [&] { state_->join(); });
}

Checkpoint::Restored Checkpoint::restore(const std::string& folder,
                                         const CheckpointRestoreOptions& options) {
  wait();
  const NoRecording no_recording;
  const c10::InferenceMode inference;
  return restore_checkpoint(state_->parts, folder, options);
}

Json& Checkpoint::extra() const { return state_->parts.extra; }

void Checkpoint::set_callbacks(const std::vector<Callback*>& callbacks) const {
  state_->parts.callbacks = callbacks;
}

void Checkpoint::set_metric_totals(const Json& totals, std::map<std::string, DTensor> sums) const {
  state_->parts.totals = totals;
  state_->parts.sums = std::move(sums);
}

Mesh Checkpoint::mesh() const { return mesh_of(state_->parts); }

}  // namespace tessera
