#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::test {

using namespace detail;

/// The expectations of a layer. All in float64.
struct LayerTest {
  std::function<LayerHandle()> make;                        ///< returns a new layer, always equal
  SampleInput input;                                        ///< the input, including the batch
  Shape output;                                             ///< shape of the output for that input
  std::vector<std::pair<std::string, Shape>> weights = {};  ///< names in the layer, in order
  Json config = {};  ///< keys of config() other than name, trainable and dtype
  std::vector<SampleInput> more_inputs = {};  ///< further inputs of a layer that merges several
};

/// Builds the layer, calls it, and takes one training step (SGD on a mean squared error) on one
/// device. Then takes the same step on meshes of 2, 4 and 2 by 2 devices in every layout of input
/// and weights (of many: 64 random ones), with one block a device and by default. Checks weights,
/// output shape and configuration, and that layer_from_config() rebuilds an equal layer; output,
/// loss, gradients and weights after the step must agree, and the gradients of the inputs must have
/// their layouts. The name is Keras': run_layer_test.
void run_layer_test(const LayerTest& test);

/// Runs run_layer_test() for a layer whose options check_layers() compares with Keras': `config` is
/// not checked here.
void run_golden_layer_test(const LayerTest& test);

}  // namespace tessera::test
