#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include <tessera/framework/mesh/layout.hpp>
#include <tessera/framework/mesh/mesh.hpp>

namespace tessera {
class CommLog;
struct CallContext;
enum class MemoryUse : uint8_t;
}  // namespace tessera
namespace tessera::strategy {
class Strategy;
}

namespace tessera::detail {

class OpListener;
class StepExecutor;
struct PlannedTensors;
class GatheredWeights;
struct LayerRemat;
struct RematRegion;
enum class BlockPolicy : uint8_t;

/// The modes of a thread. Each member is set by one scope class and read by functions of the same
/// room; a new thread has the defaults.
struct ThreadState {
  CommLog* comm_log = nullptr;                                ///< the innermost CommLogScope's log
  const std::string* comm_label = nullptr;                    ///< the innermost CommLabel's text
  std::optional<at::ScalarType> reduce_dtype = std::nullopt;  ///< ReduceDtypeScope
  bool world_size_invariant = false;                          ///< WorldSizeInvariantScope

  Mesh default_mesh = {};                                  ///< DefaultMeshScope
  Layout default_layout = {};                              ///< DefaultLayoutScope
  std::optional<BlockPolicy> block_policy = std::nullopt;  ///< BlockPolicyScope
  Mesh abstract_mesh = {};                                 ///< AbstractScope
  PlannedTensors* planned_tensors = nullptr;               ///< AbstractScope, too
  std::optional<int64_t> device = std::nullopt;            ///< DeviceMemory::For
  std::optional<MemoryUse> memory_use = std::nullopt;      ///< DeviceMemory::As

  /// The tapes that record operations, the latest last; NoRecording hides them.
  std::vector<OpListener*> tapes = {};
  OpListener* tracer = nullptr;                        ///< TracerScope
  const RematRegion* remat_region = nullptr;           ///< RematRegionScope
  std::shared_ptr<const LayerRemat> layer_remat = {};  ///< RematScope
  GatheredWeights* gathered_weights = nullptr;         ///< the innermost GatheredWeights
  bool remat_activations = false;                      ///< RematCall
  bool communicated = false;  ///< whether the running operation has communicated; see dispatch()

  bool pinned_batches = false;  ///< PinnedBatchesScope

  const CallContext* call_context = nullptr;         ///< the innermost layer call's context
  std::shared_ptr<StepExecutor> step_executor = {};  ///< StepExecutorScope
  const strategy::Strategy* strategy = nullptr;      ///< StrategyScope; null: the default one
};

/// The state of this thread.
ThreadState& thread_state();

}  // namespace tessera::detail
