#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/mesh/mesh.hpp>
#include <tessera/framework/tensor/memory_use.hpp>

namespace tessera {

/// The options of plan().
struct PlanOptions {
  int64_t batch_size = 32;  ///< rows of a global batch
  /// Bytes of a device that a step may need at most; 0: any number.
  double memory_limit = 0;
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

  /// The bytes that one device holds at the moment of a step at which it holds most, by use; of a
  /// step that ran, DeviceMemory::at_peak() measures them. Values are held from the operation that
  /// makes them to the last that reads them, so that activations and gradients are not there at
  /// once in their full size; weights and slots throughout. Between processes, the gradients
  /// include what their buckets hold (CompileOptions::bucket_cap_mb): the whole gradients until a
  /// bucket's reduction starts or, for an all-reduce, ends, and the memory that is reduced. Of the
  /// two reductions that may run at a time, one ends when the next bucket starts or a layer's
  /// collective over the same dimensions has run; if it ends earlier, the step holds less. Every
  /// device counts as if it were alone in its process. Not contained is what an operation allocates
  /// and frees itself.
  struct Peak : MemoryByUse {
    std::string place;  ///< path of the layer that runs then
  };

  Mesh mesh;
  std::vector<Row> layers;
  std::vector<Peak> peaks;  ///< by global device id
  /// Floating-point operations of a step, of all devices together: two for each product in a sum of
  /// products, one for each result of other operations; recomputed values count again.
  double flops = 0;
  /// The stages of a model that is trained in stages, and the idle share of its schedule, as text.
  /// Such a plan has no activations, gradients and collectives.
  std::string pipeline = {};
  /// The step's collectives in order; CommEntry::place is the layer or, for a gradient's reduction,
  /// the weight.
  std::vector<CommEntry> collectives;

  /// Returns the total of all rows on one device, as if all were held at once.
  double bytes(int64_t device) const;
  /// Returns two tables: bytes by layer (a range if devices differ), and collectives by kind and
  /// place.
  std::string to_string() const;
  /// Returns {"mesh", "layers": [{"path", "type", "weights": […], …}], "collectives": […]}.
  Json to_json() const;
};

}  // namespace tessera
