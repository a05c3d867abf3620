#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/io/format/checkpoint_writer.hpp>
#include <tessera/framework/io/internal/checkpoint_parts.hpp>
#include <tessera/framework/io/internal/checkpoint_state.hpp>
#include <tessera/framework/io/internal/shards_to_save.hpp>
#include <tessera/framework/tensor/internal/stored_value.hpp>

namespace tessera::detail {

/// A snapshot of everything that a checkpoint will hold. It shares the variables' memory, which
/// variables do not overwrite while it is shared. Each process keeps what it will write: each
/// distinct shard goes to the process with the fewest bytes to write so far among those that hold
/// it.
class CheckpointSnapshot {
 public:
  /// Collective. Sends no tensors, except for gradients that accumulate and are not reduced yet.
  CheckpointSnapshot(const CheckpointParts& parts, const Json& about);
  /// Writes the checkpoint. Collective, on any thread. Throws as write_checkpoint() does.
  void write(const std::string& folder) const;

 private:
  struct Piece {
    std::string tensor;
    Shape begin, end;
    int writer = 0;
    at::Tensor data = {};  ///< defined on its writer only, unless stored
    std::shared_ptr<const StoredValue> stored = nullptr;
    size_t block = 0;  ///< its position in `stored`
  };
  void add(const std::string& name, const DTensor& value);
  void add_step_losses(const std::vector<double>& losses);

  Mesh mesh_;
  int64_t number_ = 0;  ///< sequence number, by which the processes match concurrent snapshots
  int rank_ = 0;
  std::function<std::vector<std::string>(const std::string& key, const std::string& text)> gather_;
  Writers writers_;
  std::vector<CheckpointTensor> tensors_;
  std::vector<Piece> pieces_;
  Json layouts_ = Json::object();
  Json state_;
};

}  // namespace tessera::detail
