#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/mesh/mesh.hpp>

namespace tessera {

/// What plan() counts.
struct PlanOptions {
  int64_t batch_size = 32;  ///< rows of a global batch
};

/// What a training step needs and exchanges, found without allocating any of it.
struct StepPlan {
  /// What one layer needs, in bytes by global device id.
  struct Row {
    std::string path;  ///< "batch" for the data, "loss" for what no layer keeps
    std::string type;
    std::vector<double> weights;
    std::vector<double> gradients;    ///< bytes as the backward pass leaves them, not reduced
    std::vector<double> slots;        ///< bytes of the optimizer's slots
    std::vector<double> activations;  ///< kept for the backward pass; of "batch": the batch
  };

  Mesh mesh;
  std::vector<Row> layers;
  /// The step's collectives in their order; CommEntry::place is the layer or, for a gradient's
  /// reduction, the weight.
  std::vector<CommEntry> collectives;

  /// Bytes of everything on one device.
  double bytes(int64_t device) const;
  /// Two tables: bytes of the fullest device by layer, and collectives by kind and place.
  std::string to_string() const;
  /// {"mesh", "layers": [{"path", "type", "weights": […], …}], "collectives": […]}.
  Json to_json() const;
};

}  // namespace tessera
