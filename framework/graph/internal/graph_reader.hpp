#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/graph/graph_ends.hpp>
#include <tessera/framework/graph/internal/call_arguments.hpp>
#include <tessera/framework/graph/internal/mask_sources.hpp>
#include <tessera/framework/graph/operations/operation_layer.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Makes the layers of a Functional model's configuration and calls them as soon as what they read
/// is there. Operations are called where something else than a mask that follows by itself reads
/// them.
class GraphReader {
 public:
  /// An entry of "layers" with its calls. Throws ConfigError.
  void add_layer(const Json& json, const JsonPath& path, int depth);
  /// Makes all calls, and those of operations that these or the outputs need. Throws ConfigError if
  /// calls are left whose inputs nothing makes.
  void run(const EndNames& outputs);
  /// The tensors that were made. Throws ConfigError.
  GraphEnds ends(const EndNames& names) const;

 private:
  using CallName = std::pair<std::string, int64_t>;

  /// What a call says of the mask of one of its inputs.
  struct Mask {
    size_t input;
    std::optional<TensorName> tensor;  ///< empty: there is none
    JsonPath path;
  };
  struct Call {
    CallName name;
    std::vector<TensorName> inputs;
    std::vector<Mask> masks;
    JsonPath path;
    OperationArguments arguments = {};  ///< of an operation
  };
  /// Arguments of a call by their names, and where each stands.
  using Arguments = std::map<std::string, std::pair<Json, JsonPath>>;
  /// An operation as it is written.
  struct Operation {
    Json json;
    JsonPath path;
  };

  void add_name(const std::string& name, const JsonPath& path);
  void add_operation(const Json& json, const JsonPath& path);
  void add_call(const CallName& name, const Json& json, const JsonPath& path);
  static void add_named(Call& call, const Layer& layer, Arguments& arguments);
  /// Has the call made that gives a tensor, if it is one of an operation that waits.
  void need(const TensorName& name);
  /// Has the calls made whose masks do not follow by themselves; whether there were any new ones.
  bool need_masks();
  /// Lets the calls that are needed by now take part.
  void schedule();
  /// Whether a call was made; else the call whose outputs are missing, if that is the reason.
  struct Tried {
    bool done;
    std::optional<CallName> missing;
  };
  Tried try_call(const Call& call);
  bool try_mask(const Mask& mask, SymbolicTensor& input);
  std::vector<SymbolicTensor> call_operation(const Call& call,
                                             const std::vector<SymbolicTensor>& inputs);
  void make_operation(const Call& call, const std::vector<SymbolicTensor>& inputs);
  const SymbolicTensor* find(const TensorName& name) const;
  [[noreturn]] void fail_at(const Call& call) const;

  std::set<std::string> names_;
  std::map<std::string, LayerHandle> layers_;
  std::map<std::string, Operation> operations_;
  KerasMasks made_masks_;
  std::map<CallName, std::vector<SymbolicTensor>> tensors_;
  MaskFlow masks_;
  std::map<CallName, Call> operation_calls_;  ///< that nothing needs yet
  std::deque<Call> calls_;
  size_t scheduled_ = 0;          ///< how many of them take part
  std::set<size_t> left_, next_;  ///< of these: not made yet, to be tried in the next pass
};

}  // namespace tessera::detail
