#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

/// The checks of layers against a file that tests/golden/make_keras_*.py wrote with layer_case()
/// of keras_golden.py.
namespace tessera::test {

using namespace detail;

/// A part of golden/FILE; each file is read once.
const Json& golden_part(const std::string& file, const std::string& part);

/// A tensor of its own dtype: {"dtype", "shape", "values"}.
at::Tensor input_tensor(const Json& json);
std::vector<at::Tensor> input_tensors(const Json& list);

/// Empty if the tensor is the golden's within 1e-5 of the golden's scale, 1e-9 in float64.
std::string unlike(const at::Tensor& actual, const Json& golden);

DTensor on_one_device(const at::Tensor& tensor);

/// The layer as Keras describes it, with Keras' weights, on the mesh of the inputs.
LayerHandle layer_of(const Json& golden, const Inputs& inputs);

/// Weights of an output's sum, whose gradients the goldens hold: (i mod 7) / 2 - 1.25 in row-major
/// order.
at::Tensor upstream(const at::Tensor& output);

/// Runs every case: outputs, penalties and gradients, those of the inputs and then those of the
/// trainable weights, are Keras', on one device and under every layout of inputs and weights (of
/// many: a part) on meshes of 2, 4 and 2 by 2 devices, before and after a training step; the layer
/// plans what it would give; Keras' configuration comes back as it was.
void check_layers(const Json& cases);

/// The parts of check_layers().
void check_values(const Json& golden);
void check_layouts(const Json& golden);
void check_plan(const Json& golden);
void check_config(const Json& golden);

}  // namespace tessera::test
