#include <tessera/framework/io/checkpoint_snapshot.hpp>

#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/io/checkpoint_state.hpp>
#include <tessera/framework/io/safetensors_dtype.hpp>
#include <tessera/framework/io/tiles.hpp>

namespace tessera {

CheckpointSnapshot::CheckpointSnapshot(const CheckpointParts& parts, const Json& about) {
  for (const CheckpointItem& item : items_of(parts)) add(item.name, item.variable.value());
  for (const auto& [key, callback] : named_callbacks(parts)) {
    for (const auto& [path, value] : callback->tensors()) {
      add("callbacks/" + key + "/" + path, value);
    }
  }
  CheckpointState state = present_state(parts);
  if (state.history) add_step_losses(std::exchange(state.history->steps, {}));
  state.about = about;
  state_ = to_json(state);
  state_["mesh"] = mesh_of(parts).describe();
  state_["layouts"] = std::move(layouts_);
}

void CheckpointSnapshot::add(const std::string& name, const DTensor& value) {
  const std::vector<Tile> tiles = tiles_of(*value.sharding());
  const std::vector<at::Tensor> data = collect_tiles(value, tiles);
  tensors_.push_back({name, safetensors_dtype(value.dtype(), name), value.shape()});
  layouts_[name] = value.layout().describe();
  for (size_t i = 0; i < tiles.size(); ++i) {
    if (!data[i].defined()) continue;
    const std::vector<Interval>& intervals = tiles[i].intervals;
    pieces_.push_back({name, tile_begin(intervals), tile_end(intervals), data[i]});
  }
}

void CheckpointSnapshot::add_step_losses(const std::vector<double>& losses) {
  const Shape shape = {static_cast<int64_t>(losses.size())};
  tensors_.push_back({step_losses_name, "F64", shape});
  if (losses.empty()) return;
  pieces_.push_back({step_losses_name, {0}, shape, at::tensor(losses, at::kDouble)});
}

void CheckpointSnapshot::write(const std::string& folder) const {
  std::vector<CheckpointPiece> pieces;
  for (const Piece& piece : pieces_) {
    const auto* bytes = static_cast<const std::byte*>(piece.data.const_data_ptr());
    pieces.push_back({piece.tensor, piece.begin, piece.end, {bytes, piece.data.nbytes()}});
  }
  write_checkpoint(folder, tensors_, pieces, state_);
}

}  // namespace tessera
