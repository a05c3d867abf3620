#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Where Keras has its operations.
inline const std::string numpy = "keras.src.ops.numpy", math = "keras.src.ops.math",
                         nn = "keras.src.ops.nn", core = "keras.src.ops.core";

/// The place of tensor `number` of a call among the arguments of an operation, which are JSON.
Json tensor_place(size_t number);
/// Which tensor stands at the place; nothing if the JSON is none.
std::optional<size_t> tensor_at(const Json& json);

/// "float32" as a dtype; nothing for what no tensor is of.
std::optional<at::ScalarType> dtype_of_name(const std::string& name);

/// What an operation is called with: its options and its arguments by their names, with tensors at
/// their places. Readers throw ConfigError naming the operation and what is wrong.
class OperationCall {
 public:
  using Arguments = std::map<std::string, Json>;

  OperationCall(const std::string& where, const Json& options, const Arguments& arguments,
                const std::vector<DTensor>& tensors)
      : path_(where), options_(options), arguments_(arguments), tensors_(tensors) {}

  template <class T>
  T option(const std::string& name) const {
    return json_as<T>(options_.at(name), path_.key(name));
  }
  /// An axis, several or, where null stands for all, none; negative ones count from the end.
  std::vector<int64_t> axes(const std::string& name) const;

  const Json& argument(const std::string& name) const;
  JsonPath place(const std::string& name) const { return path_.key(name); }
  /// An argument that is a tensor, or an array of the configuration.
  DTensor tensor(const std::string& name) const;
  /// The same, in a floating dtype: whole numbers and truth values as float32.
  DTensor floating(const std::string& name) const;
  /// Tensors and numbers in the dtype that Keras computes with them in: numbers take that of the
  /// tensors, unless these are of whole numbers and the number is not.
  std::vector<DTensor> promoted(const std::vector<std::string>& names) const;
  /// The same for an argument that is a list.
  std::vector<DTensor> promoted_list(const std::string& name) const;
  /// A constant beside the tensors.
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
  std::vector<std::string> arguments;  ///< of a call, in Keras' order
  Json options;                        ///< of the class, with Keras' default values
  std::function<std::vector<DTensor>(const OperationCall&)> run;
  /// Arguments that Keras writes by their names, with the default values that it writes.
  Json named = Json::object();
};

/// An operation of Keras' NumPy with one result.
GraphOperation numpy_operation(const std::string& name, std::vector<std::string> arguments,
                               Json options, DTensor (*function)(const OperationCall&));

/// Refuses more parts or places than a model has: a configuration must not fill memory.
void check_parts(int64_t count, const JsonPath& path);

/// The operation of this class; null if there is none.
const GraphOperation* find_operation(const std::string& class_name);

/// The tables that find_operation() looks into.
std::vector<GraphOperation> elementwise_operations();
std::vector<GraphOperation> axis_operations();
std::vector<GraphOperation> index_operations();
std::vector<GraphOperation> product_operations();
std::vector<GraphOperation> shape_operations();

}  // namespace tessera::detail
