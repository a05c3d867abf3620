#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>
#include <tessera/framework/training/pipeline/record_step.hpp>

namespace tessera::detail {

/// The meshes on which a pipeline computes. The mesh of the rows has another dimension before those
/// of the model's mesh, whose coordinates are the microbatches: all of them are on the same
/// devices, one after the other. So shards, random numbers and denominators of a microbatch are
/// those of the whole batch.
class PipelineMeshes {
 public:
  /// `stage_dim`: the dimension of `mesh` whose coordinates hold the stages, by `device_of`; if it
  /// is empty, every device holds all stages. Throws ConfigError if the mesh has a dimension
  /// "microbatch".
  PipelineMeshes(const Mesh& mesh, std::string stage_dim, std::vector<int64_t> device_of,
                 int64_t microbatches);

  int64_t microbatches() const { return rows_.dim_size(0); }
  int64_t stages() const { return static_cast<int64_t>(device_of_.size()); }
  /// The mesh of the rows of all microbatches.
  const Mesh& rows() const { return rows_; }
  /// Returns the mesh that holds the weights of a stage, a view of the model's.
  const Mesh& weights_of(int32_t stage) const { return weights_[size_t(stage)]; }
  /// Returns the view of rows() on the devices of a stage: of all microbatches, or of one.
  const Mesh& rows_of(int32_t stage) const { return all_rows_[size_t(stage)]; }
  const Mesh& turn(int32_t stage, int64_t microbatch) const {
    return turns_[size_t(stage)][size_t(microbatch)];
  }
  /// Whether this process holds devices of a stage.
  bool is_here(int32_t stage) const { return !weights_of(stage).local_ids().empty(); }

  /// Returns a layout of one of these meshes, or of a planned step on rows(), on another of them. A
  /// partial sum over microbatches is a sum on a mesh of weights.
  Layout layout_on(const Layout& layout, const Mesh& mesh) const;
  /// Returns a value on a mesh of the same devices: from weights_of() to turn() of the stage, or
  /// back. Shares its memory.
  DTensor value_on(const DTensor& value, const Mesh& mesh) const;

 private:
  std::string stage_dim_;
  std::vector<int64_t> device_of_;
  Mesh rows_;
  std::vector<Mesh> weights_, all_rows_;  ///< by stage
  std::vector<std::vector<Mesh>> turns_;  ///< by stage and microbatch
};

}  // namespace tessera::detail
