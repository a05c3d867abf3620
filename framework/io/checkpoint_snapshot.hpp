#pragma once

#include <string>
#include <vector>

#include <tessera/framework/base/checkpoint_writer.hpp>
#include <tessera/framework/io/checkpoint_parts.hpp>

namespace tessera {

/// What a checkpoint will hold, as it was when this was made: values are kept by their memory,
/// which variables leave alone while somebody holds it. On processes that do not write: nothing.
class CheckpointSnapshot {
 public:
  /// Collective.
  CheckpointSnapshot(const CheckpointParts& parts, const Json& about);
  /// May be called on another thread. Throws as write_checkpoint() does.
  void write(const std::string& folder) const;

 private:
  struct Piece {
    std::string tensor;
    Shape begin, end;
    at::Tensor data;
  };
  void add(const std::string& name, const DTensor& value);
  void add_step_losses(const std::vector<double>& losses);

  std::vector<CheckpointTensor> tensors_;
  std::vector<Piece> pieces_;
  Json layouts_ = Json::object();
  Json state_;
};

}  // namespace tessera
