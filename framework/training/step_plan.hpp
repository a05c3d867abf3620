#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/mesh/mesh.hpp>

namespace tessera {

/// The options of plan().
struct PlanOptions {
  int64_t batch_size = 32;  ///< rows of a global batch
};

/// Memory and collectives of a training step, found without allocating any of it.
struct StepPlan {
  /// Memory of one layer, in bytes by global device id.
  struct Row {
    std::string path;  ///< "batch" for the data, "loss" for values of no layer
    std::string type;
    std::vector<double> weights;
    std::vector<double> casts;     ///< weights in another dtype, saved for the backward pass
    std::vector<double> gathered;  ///< gathered weights, in any dtype, saved for the backward pass
    /// Bytes after the backward pass, reduced unless LayoutRule::reduce_at_end.
    std::vector<double> gradients;
    std::vector<double> slots;        ///< bytes of the optimizer's slots
    std::vector<double> activations;  ///< saved for the backward pass; in row "batch": the batch
  };

  Mesh mesh;
  std::vector<Row> layers;
  /// The step's collectives in order; CommEntry::place is the layer or, for a gradient's reduction,
  /// the weight.
  std::vector<CommEntry> collectives;

  /// Returns the total bytes on one device.
  double bytes(int64_t device) const;
  /// Returns two tables: bytes by layer (a range if devices differ), and collectives by kind and
  /// place.
  std::string to_string() const;
  /// Returns {"mesh", "layers": [{"path", "type", "weights": […], …}], "collectives": […]}.
  Json to_json() const;
};

}  // namespace tessera
