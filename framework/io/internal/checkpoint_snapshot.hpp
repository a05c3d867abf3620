#pragma once

#include <string>
#include <vector>

#include <tessera/framework/io/format/checkpoint_writer.hpp>
#include <tessera/framework/io/internal/checkpoint_parts.hpp>
#include <tessera/framework/io/internal/shards_to_save.hpp>

namespace tessera::detail {

/// What a checkpoint will hold, as it was when this was made: values are kept by their memory,
/// which variables leave alone while somebody holds it. Each process keeps what it will write: of
/// those that hold a part of a tensor the one that has least to write so far.
class CheckpointSnapshot {
 public:
  /// Collective. Sends no tensors.
  CheckpointSnapshot(const CheckpointParts& parts, const Json& about);
  /// May be called on another thread, by every process. Throws as write_checkpoint() does.
  void write(const std::string& folder) const;

 private:
  struct Piece {
    std::string tensor;
    Shape begin, end;
    int writer = 0;
    at::Tensor data = {};  ///< on its writer
  };
  void add(const std::string& name, const DTensor& value);
  void add_step_losses(const std::vector<double>& losses);

  Mesh mesh_;
  int64_t number_ = 0;  ///< in the order of making, by which writers of several know each other
  int rank_ = 0;
  Writers writers_;
  std::vector<CheckpointTensor> tensors_;
  std::vector<Piece> pieces_;
  Json layouts_ = Json::object();
  Json state_;
};

}  // namespace tessera::detail
