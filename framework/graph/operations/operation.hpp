#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Keras' modules of operations.
inline const std::string numpy = "keras.src.ops.numpy", math = "keras.src.ops.math",
                         nn = "keras.src.ops.nn", core = "keras.src.ops.core";

/// Returns the placeholder of the call's tensor `number` in an operation's JSON arguments.
Json tensor_placeholder(size_t number);
/// Returns the number of the tensor that a placeholder stands for; nothing for other JSON.
std::optional<size_t> tensor_at(const Json& json);

/// Returns the dtype of a name such as "float32"; nothing for an unsupported one.
std::optional<at::ScalarType> dtype_of_name(const std::string& name);

/// The dtype that an operation reads a tensor in: its own, int32 in place of bool (numbers),
/// float32 in place of integers and bool (floating), or whether elements are not 0 (booleans).
enum class ReadIn : uint8_t { own, numbers, floating, booleans };
/// Returns x in the dtype that it is read in.
DTensor read_in(ReadIn dtype, const DTensor& x);

/// Returns axes as an option of an operation: null for all.
Json axes_option(const std::vector<int64_t>& axes);

/// A call of an operation: its options, its arguments by name and the tensors that placeholders
/// stand for. Accessors throw ConfigError naming the operation and the invalid argument.
class OperationCall {
 public:
  using Arguments = std::map<std::string, Json>;

  OperationCall(const std::string& where, const Json& options, const Arguments& arguments,
                const std::vector<DTensor>& tensors)
      : path_(JsonPath(where).from_python()),
        options_(options),
        arguments_(arguments),
        tensors_(tensors) {}

  template <class T>
  T option(const std::string& name) const {
    return json_as<T>(options_.at(name), path_.key(name));
  }
  /// Returns the axes of an option that is one axis, a list or null; empty for null, which means
  /// all. Negative axes count from the end.
  std::vector<int64_t> axes(const std::string& name) const;

  const Json& argument(const std::string& name) const;
  JsonPath path_of(const std::string& name) const { return path_.key(name); }
  /// Returns an argument that is a tensor, or a constant array in the configuration.
  DTensor tensor(const std::string& name, ReadIn dtype = ReadIn::own) const;
  /// Returns tensors and numbers in the dtype that Keras promotes them to: numbers take the
  /// tensors' dtype, but a fraction with integer tensors makes float32.
  std::vector<DTensor> promoted(const std::vector<std::string>& names) const;
  /// Does so for the items of an argument that is a list.
  std::vector<DTensor> promoted_list(const std::string& name) const;
  /// Replicates a constant over the tensors' mesh.
  DTensor constant(const at::Tensor& values) const;

 private:
  std::vector<DTensor> promoted_values(const std::vector<std::pair<Json, JsonPath>>& values) const;
  DTensor tensor(const Json& json, const JsonPath& path) const;

  JsonPath path_;
  const Json& options_;
  const Arguments& arguments_;
  const std::vector<DTensor>& tensors_;
};

/// One of Keras' operations (keras.ops) on tensors of a graph.
struct GraphOperation {
  std::string class_name;              ///< "Add"
  std::string module;                  ///< "keras.src.ops.numpy"
  std::vector<std::string> arguments;  ///< a call's arguments, in Keras' order
  Json options;                        ///< the class' options, with Keras' defaults
  std::function<std::vector<DTensor>(const OperationCall&)> run;
  /// Arguments that Keras writes by name, with the defaults that it writes.
  Json named = Json::object();
};

/// Makes an operation with one result.
GraphOperation make_operation(const std::string& class_name, const std::string& module,
                              std::vector<std::string> arguments, Json options,
                              std::function<DTensor(const OperationCall&)> function);

/// Throws ConfigError for more slices of an axis than any model has: an untrusted configuration
/// must not exhaust memory.
void check_slice_count(int64_t count, const JsonPath& path);

/// Returns the operation of this class; null if there is none.
const GraphOperation* find_operation(const std::string& class_name);

/// Return the tables that find_operation() searches.
std::vector<GraphOperation> regular_operations();
std::vector<GraphOperation> elementwise_operations();
std::vector<GraphOperation> axis_operations();
std::vector<GraphOperation> index_operations();
std::vector<GraphOperation> product_operations();
std::vector<GraphOperation> shape_operations();

}  // namespace tessera::detail
