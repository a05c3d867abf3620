#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::bench {

using namespace detail;

/// A sample of an operation, to be timed.
struct OpCase {
  const OpInfo* info = nullptr;
  std::shared_ptr<const void> op;
  std::vector<SampleInput> inputs;
  bool scaled = false;  ///< whether extents are larger than the sample's
};

/// Makes a case of the sample in float32. If `scale`, grows its axes so that the largest input or
/// output has about `scaled_elements`, as far as the operation's attributes allow.
OpCase make_case(const OpInfo& info, const AnySample& sample, bool scale);
inline constexpr double scaled_elements = 1e5;

/// Makes random inputs in the sample's ranges.
std::vector<at::Tensor> make_inputs(const OpCase& c);

/// Packs the inputs on a one-dimensional mesh. The first axis that the operation supports sharded
/// is sharded, in every input that has it.
std::vector<DTensor> place_inputs(const OpCase& c, const std::vector<at::Tensor>& inputs,
                                  const Mesh& mesh);

/// Runs the operation as a user calls it, and resolves partial results.
void run_case(const OpCase& c, const std::vector<DTensor>& inputs);

/// Returns the shapes of the inputs: "(4, 3) (3, 5)".
std::string shapes_text(const OpCase& c);

}  // namespace tessera::bench
