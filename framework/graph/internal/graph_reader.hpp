#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/graph/internal/call_arguments.hpp>
#include <tessera/framework/graph/internal/mask_sources.hpp>
#include <tessera/framework/graph/operations/operation_layer.hpp>
#include <tessera/framework/graph/symbolic_tensors.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Makes the layers of a Functional model's configuration and calls them as soon as their inputs
/// exist. Calls an operation only if something reads it other than a mask that layers propagate
/// anyway.
class GraphReader {
 public:
  /// Reads an entry of "layers" with its calls. Throws ConfigError.
  void add_layer(const Json& json, const JsonPath& path, int depth);
  /// Makes all calls of layers, and the calls of operations that these or the outputs need. Throws
  /// ConfigError if calls are left whose inputs no call outputs.
  void run(const EndNames& outputs);
  /// Returns the named tensors. Throws ConfigError.
  SymbolicTensors ends(const EndNames& names) const;

 private:
  using CallName = std::pair<std::string, int64_t>;

  /// A mask argument of a call, for one of its inputs.
  struct Mask {
    size_t input;
    std::optional<TensorName> tensor;  ///< empty: no mask
    JsonPath path;
  };
  struct Call {
    CallName name;
    std::vector<TensorName> inputs;
    std::vector<Mask> masks;
    JsonPath path;
    OperationArguments arguments = {};  ///< an operation's arguments
    bool reversed = false;              ///< whether it has `reverse=True`
  };
  /// Arguments of a call by name, each with its JSON path.
  using Arguments = std::map<std::string, std::pair<Json, JsonPath>>;
  /// An operation's JSON and its path.
  struct Operation {
    Json json;
    JsonPath path;
  };

  void add_name(const std::string& name, const JsonPath& path);
  void add_operation(const Json& json, const JsonPath& path);
  void add_call(const CallName& name, const Json& json, const JsonPath& path);
  static void add_named(Call& call, const Layer& layer, Arguments& arguments);
  /// Queues the operation call that outputs a tensor, unless it is queued already.
  void queue_producer(const TensorName& name);
  /// Queues the operation calls that compute masks of remaining calls. Returns whether there were
  /// any new ones.
  bool queue_mask_producers();
  /// Adds the queued calls, and the operation calls that they need, to the next pass.
  void schedule();
  /// Whether a call was made; if not, the call whose outputs are missing, if that is the reason.
  struct CallResult {
    bool done;
    std::optional<CallName> missing;
  };
  CallResult try_call(const Call& call);
  const LayerHandle& layer_of(const Call& call);
  bool try_mask(const Mask& mask, SymbolicTensor& input);
  std::vector<SymbolicTensor> call_operation(const Call& call,
                                             const std::vector<SymbolicTensor>& inputs);
  void make_operation(const Call& call, const std::vector<SymbolicTensor>& inputs);
  const SymbolicTensor* find(const TensorName& name) const;
  [[noreturn]] void fail_at(const Call& call) const;

  std::set<std::string> names_;
  std::map<std::string, LayerHandle> layers_;
  std::map<std::string, LayerHandle> reversed_;  ///< layers of calls with `reverse=True`
  std::map<std::string, Operation> operations_;
  KerasMasks keras_masks_;
  std::map<CallName, std::vector<SymbolicTensor>> tensors_;
  MaskFlow masks_;
  std::map<CallName, Call> operation_calls_;  ///< calls of operations that nothing needs yet
  std::deque<Call> calls_;
  size_t scheduled_ = 0;        ///< number of scheduled calls
  std::set<size_t> remaining_;  ///< indices of scheduled calls not made yet
  std::set<size_t> next_;       ///< indices of calls to try in the next pass
};

}  // namespace tessera::detail
