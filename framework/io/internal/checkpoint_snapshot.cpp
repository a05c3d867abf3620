#include <tessera/framework/io/internal/checkpoint_snapshot.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/process_communicator.hpp>
#include <tessera/framework/comm/world_size_invariant.hpp>
#include <tessera/framework/io/internal/shards_to_save.hpp>
#include <tessera/framework/tensor/internal/deferred_checks.hpp>
#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>

namespace tessera::detail {
namespace {

/// Returns the sequence number of the mesh' next snapshot. Equal on all processes, since snapshots
/// are made in the same order on the thread that runs collectives; those of an elastic run count
/// anew in each generation.
int64_t next_number(const Mesh& mesh) {
  static thread_local int64_t count = 0, counted = 0;
  if (mesh.is_local()) return 0;
  const auto* const processes = dynamic_cast<ProcessCommunicator*>(&communicator_of(mesh));
  const int64_t reconnections = processes ? processes->reconnections() : 0;
  if (std::exchange(counted, reconnections) != reconnections) count = 0;
  return ++count;
}

/// Whether the model was compiled with world_size_invariant.
bool is_invariant(const CheckpointParts& parts) {
  if (!parts.model || !parts.model->compiled()) return false;
  const CompileOptions options = parts.model->compile_options();
  return options.world_size_invariant ||
         (options.layouts.defined() && options.layouts.world_size_invariant());
}

}  // namespace

CheckpointSnapshot::CheckpointSnapshot(const CheckpointParts& parts, const Json& about)
    : mesh_(mesh_of(parts)), number_(next_number(mesh_)) {
  if (!mesh_.is_local()) {
    Communicator& communicator = communicator_of(mesh_);
    rank_ = communicator.rank();
    gather_ = [&communicator](const std::string& key, const std::string& text) {
      return communicator.gather(key, text);
    };
    // A save in the background ends with them.
    if (auto* const processes = dynamic_cast<ProcessCommunicator*>(&communicator)) {
      gather_ = processes->gather_by_present_connections();
    }
  }
  raise_deferred_checks();
  const bool invariant = is_invariant(parts);
  // Gradients that are not reduced yet are, for the file.
  const WorldSizeInvariantScope scope(invariant);
  writers_ = Writers(mesh_);
  CheckpointState state = current_state(parts);
  for_each_tensor(parts, state,
                  [this](const std::string& name, const DTensor& value) { add(name, value); });
  if (state.history) add_step_losses(std::exchange(state.history->steps, {}));
  state.about = about;
  state_ = to_json(state);
  state_["mesh"] = mesh_.describe();
  state_["world_size_invariant"] = invariant;
  state_["layouts"] = std::move(layouts_);
}

void CheckpointSnapshot::add(const std::string& name, const DTensor& value) {
  tensors_.push_back({name, safetensors_dtype(value.dtype(), name), value.shape()});
  layouts_[name] = value.layout().describe();
  const std::shared_ptr<const StoredValue> stored = StoredValue::of(value);
  for (const Tile& tile : tiles_of(*value.sharding())) {
    const auto bytes =
        static_cast<uint64_t>(numel(tile_shape(tile.intervals))) * c10::elementSize(value.dtype());
    Piece piece{name, tile_begin(tile.intervals), tile_end(tile.intervals),
                writers_.choose(tile.ranks, bytes)};
    if (piece.writer == rank_ && stored) {
      piece.stored = stored;
      piece.block = static_cast<size_t>(tile.block);
    } else if (piece.writer == rank_) {
      piece.data = value.blocks()[static_cast<size_t>(tile.block)].cpu().contiguous();
    }
    pieces_.push_back(std::move(piece));
  }
}

void CheckpointSnapshot::add_step_losses(const std::vector<double>& losses) {
  const Shape shape = {static_cast<int64_t>(losses.size())};
  tensors_.push_back({step_losses_name, "F64", shape});
  if (losses.empty()) return;
  std::vector<int> everyone(writers_.size());
  std::iota(everyone.begin(), everyone.end(), 0);
  const int writer = writers_.choose(everyone, losses.size() * sizeof(double));
  pieces_.push_back({step_losses_name, {0}, shape, writer, at::tensor(losses, at::kDouble)});
}

void CheckpointSnapshot::write(const std::string& folder) const {
  std::vector<CheckpointPiece> pieces;
  std::vector<at::Tensor> views;  // of stored blocks
  for (const Piece& piece : pieces_) {
    std::span<const std::byte> data;
    at::Tensor elements = piece.data;
    if (piece.stored) views.push_back(elements = piece.stored->view(piece.block).contiguous());
    if (elements.defined()) {
      data = {static_cast<const std::byte*>(elements.const_data_ptr()), elements.nbytes()};
    }
    pieces.push_back({piece.tensor, piece.begin, piece.end, data, piece.writer});
  }
  CheckpointWriterOptions options{.rank = rank_, .writers = static_cast<int>(writers_.size())};
  if (!mesh_.is_local()) {
    // The key is not the folder: processes may know it by different paths, and another save may use
    // the same path.
    const std::string key = str("checkpoint ", number_);
    options.gather = [this, key](const std::string& text) { return gather_(key, text); };
  }
  write_checkpoint(folder, tensors_, pieces, state_, options);
}

}  // namespace tessera::detail
