#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::test {

using namespace detail;

/// What a layer should be. All in float64.
struct LayerTest {
  std::function<LayerHandle()> make;                        ///< a new layer, always equal
  SampleInput input;                                        ///< with the batch
  Shape output;                                             ///< for that input
  std::vector<std::pair<std::string, Shape>> weights = {};  ///< names in the layer, in order
  Json config = {};  ///< what config() holds beside name, trainable and dtype
  std::vector<SampleInput> more_inputs = {};  ///< of a layer that merges several
};

/// Builds the layer, calls it, and takes one training step (of SGD on a mean squared error) on one
/// device, then takes the same step on meshes of 2, 4 and 2 by 2 devices in every layout of input
/// and weights (of many: 64 drawn), one block a device and the default. Checks weights, output
/// shape and configuration, and that layer_from_config() makes an equal layer of it; output, loss,
/// gradients and weights after the step must agree, and the gradients of the inputs have their
/// layouts. Keras' name: run_layer_test.
void run_layer_test(const LayerTest& test);

/// run_layer_test() of a layer whose options check_layers() compares with Keras': here `config` is
/// not looked at.
void run_golden_layer_test(const LayerTest& test);

}  // namespace tessera::test
