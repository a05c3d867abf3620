#pragma once

#include <string>
#include <vector>

#include <tessera/framework/graph/operations/operation.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// The arguments of an operation's calls as Keras writes them, with placeholders for tensors.
struct OperationArguments {
  Json args = Json::array();
  Json kwargs = Json::object();
  bool operator==(const OperationArguments&) const = default;
};

/// One of Keras' operations as a node of a graph. It is numbered, written and shown like a layer,
/// but is not one of the model's layers, casts nothing and does not propagate masks.
class OperationLayer final : public Layer {
 public:
  /// `config` may omit options of the operation and may contain its name. Throws ConfigError naming
  /// `where` for unknown options and arguments.
  OperationLayer(const GraphOperation& operation, const Json& config, OperationArguments arguments,
                 std::vector<at::ScalarType> dtypes, const JsonPath& where);
  std::string class_name() const override { return operation_.class_name; }
  /// Returns Keras' module of the class: "keras.src.ops.numpy".
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
  /// Returns abstract outputs, without data, with `unknown` for unknown extents of the inputs.
  std::vector<DTensor> planned(Shapes inputs, int64_t unknown) const;

  const GraphOperation& operation_;
  Json options_;
  OperationArguments arguments_;
  OperationCall::Arguments bound_;      ///< arguments_ by name
  std::vector<at::ScalarType> dtypes_;  ///< the input tensors' dtypes
};

}  // namespace tessera::detail
