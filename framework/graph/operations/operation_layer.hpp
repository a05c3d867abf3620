#pragma once

#include <string>
#include <vector>

#include <tessera/framework/graph/operations/operation.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// The arguments of an operation's calls as Keras writes them, tensors at their places.
struct OperationArguments {
  Json args = Json::array();
  Json kwargs = Json::object();
  bool operator==(const OperationArguments&) const = default;
};

/// One of Keras' operations as a node of a graph. It is numbered, written and shown as layers are,
/// but is no layer of the model, casts nothing and ends masks.
class OperationLayer final : public Layer {
 public:
  /// `config` may leave out options of the operation and may hold its name. Throws ConfigError
  /// naming `where` for unknown options and arguments.
  OperationLayer(const GraphOperation& operation, const Json& config, OperationArguments arguments,
                 std::vector<at::ScalarType> dtypes, const JsonPath& where);
  std::string class_name() const override { return operation_.class_name; }
  /// Where Keras has the class: "keras.src.ops.numpy".
  const std::string& module() const { return operation_.module; }
  Json config() const override;
  const OperationArguments& arguments() const { return arguments_; }
  Shapes output_shapes(const Shapes& inputs) const override;
  bool is_operation() const override { return true; }
  bool can_be_replayed() const override { return true; }

 protected:
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext&) override;
  std::vector<at::ScalarType> symbolic_dtypes(const Shapes& inputs, size_t outputs) const override;

 private:
  std::vector<DTensor> run(const Inputs& inputs) const;
  /// The outputs without numbers, of inputs whose unknown extents are `unknown`.
  std::vector<DTensor> planned(Shapes inputs, int64_t unknown) const;

  const GraphOperation& operation_;
  Json options_;
  OperationArguments arguments_;
  OperationCall::Arguments bound_;      ///< the same by their names
  std::vector<at::ScalarType> dtypes_;  ///< of the tensors in the graph
};

}  // namespace tessera::detail
