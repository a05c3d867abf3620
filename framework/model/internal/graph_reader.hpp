#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/model/internal/functional_config.hpp>
#include <tessera/framework/model/internal/mask_sources.hpp>

namespace tessera::detail {

/// Makes the layers of a Functional model's configuration and calls them as soon as what they read
/// is there.
class GraphReader {
 public:
  /// An entry of "layers" with its calls. Throws ConfigError.
  void add_layer(const Json& json, const JsonPath& path, int depth);
  /// Throws ConfigError if calls are left whose inputs nothing makes.
  void run();
  /// The tensors of "input_layers" or "output_layers". Throws ConfigError.
  std::vector<SymbolicTensor> ends(const Json& json, const JsonPath& path) const;

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
  };
  /// Arguments of a call by their names, and where each stands.
  using Arguments = std::map<std::string, std::pair<Json, JsonPath>>;

  void add_call(const CallName& name, const Json& json, const JsonPath& path);
  static void add_named(Call& call, const Layer& layer, Arguments& arguments);
  /// Whether a call was made; else the call whose outputs are missing, if that is the reason.
  struct Tried {
    bool done;
    std::optional<CallName> missing;
  };
  Tried try_call(const Call& call);
  bool try_mask(const std::string& layer, const Mask& mask, SymbolicTensor& input) const;
  const SymbolicTensor* find(const TensorName& name) const;
  [[noreturn]] void fail_at(const Call& call) const;

  std::map<std::string, LayerHandle> layers_;
  KerasOperations operations_;
  std::map<CallName, std::vector<SymbolicTensor>> tensors_;
  MaskFlow masks_;
  std::vector<Call> calls_;
};

}  // namespace tessera::detail
