#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

/// Checks of layers against a file that tests/golden/make_keras_*.py wrote with layer_case() of
/// keras_golden.py.
namespace tessera::test {

using namespace detail;

/// Returns a section of golden/FILE; each file is read once.
const Json& golden_part(const std::string& file, const std::string& part);

/// Reads a tensor with its dtype: {"dtype", "shape", "values"}.
at::Tensor input_tensor(const Json& json);
std::vector<at::Tensor> input_tensors(const Json& list);

/// Empty if the tensor is the golden's within 1e-5 of the golden's scale, 1e-9 in float64; else the
/// difference.
std::string unlike(const at::Tensor& actual, const Json& golden);

DTensor on_one_device(const at::Tensor& tensor);

/// Returns the layer as Keras describes it, with Keras' weights, on the mesh of the inputs.
LayerHandle layer_of(const Json& golden, const Inputs& inputs);

/// Returns the upstream gradient of the goldens: (i mod 7) / 2 - 1.25 in row-major order.
at::Tensor upstream(const at::Tensor& output);

/// Runs every case on one device and under every layout of inputs and weights (of many: a
/// selection) on meshes of 2, 4 and 2 by 2 devices, before and after a training step. Checks that
/// outputs, penalties and gradients (of the inputs, then of the trainable weights) are Keras', that
/// the layer plans its real outputs, and that Keras' configuration round-trips.
void check_layers(const Json& cases);

/// Does so for the cases for which differs(row) is false, and checks that the outputs of the others
/// are not Keras'.
void check_layers(const Json& cases, const std::function<bool(size_t row)>& differs);

/// The parts of check_layers().
void check_values(const Json& golden);
void check_layouts(const Json& golden);
void check_plan(const Json& golden);
void check_config(const Json& golden);

}  // namespace tessera::test
