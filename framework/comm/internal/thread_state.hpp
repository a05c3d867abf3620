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
}  // namespace tessera
namespace tessera::strategy {
class Strategy;
}

namespace tessera::detail {

class OpListener;
class StepExecutor;
struct AbstractNotes;
enum class BlockPolicy : uint8_t;

/// The modes that a thread computes in. Each member is set by one class of scopes, in the room that
/// it is for, and read by that room's functions; a new thread has the defaults.
struct ThreadState {
  CommLog* comm_log = nullptr;                                ///< of the innermost CommLogScope
  const std::string* comm_label = nullptr;                    ///< of the innermost CommLabel
  std::optional<at::ScalarType> reduce_dtype = std::nullopt;  ///< ReduceDtypeScope

  Mesh default_mesh = {};                                  ///< DefaultMeshScope
  Layout default_layout = {};                              ///< DefaultLayoutScope
  std::optional<BlockPolicy> block_policy = std::nullopt;  ///< BlockPolicyScope
  Mesh abstract_mesh = {};                                 ///< AbstractScope
  AbstractNotes* abstract_notes = nullptr;                 ///< AbstractScope, too
  std::optional<int64_t> device = std::nullopt;            ///< DeviceMemory::For

  /// The tapes that record operations, the last begun at the end; NoRecording hides them.
  std::vector<OpListener*> tapes = {};
  OpListener* tracer = nullptr;  ///< TracerScope

  bool pinned_batches = false;  ///< PinnedBatchesScope

  const CallContext* call_context = nullptr;         ///< of the innermost call of a layer
  std::shared_ptr<StepExecutor> step_executor = {};  ///< StepExecutorScope
  const strategy::Strategy* strategy = nullptr;      ///< StrategyScope; null: the default one
};

/// The state of this thread.
ThreadState& thread_state();

}  // namespace tessera::detail
