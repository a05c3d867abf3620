#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::bench {

using namespace detail;

/// One sample of an operation, to be timed.
struct OpCase {
  const OpInfo* info = nullptr;
  std::shared_ptr<const void> op;
  std::vector<SampleInput> inputs;
  bool scaled = false;  ///< extents are larger than the sample's
};

/// The sample in float32, and if `scale` with longer axes, so that the largest input or output has
/// about `scaled_elements`, as far as the operation's attributes allow.
OpCase make_case(const OpInfo& info, const AnySample& sample, bool scale);
inline constexpr double scaled_elements = 1e5;

/// Random inputs as the sample asks for.
std::vector<at::Tensor> make_inputs(const OpCase& c);

/// The inputs on a mesh of one dimension: the first axis that the operation can cut is cut over it,
/// in every input that has it.
std::vector<DTensor> place_inputs(const OpCase& c, const std::vector<at::Tensor>& inputs,
                                  const Mesh& mesh);

/// The operation as a user calls it, pending reductions of the results included.
void run_case(const OpCase& c, const std::vector<DTensor>& inputs);

/// "(4,3) (3,5)".
std::string shapes_text(const OpCase& c);

}  // namespace tessera::bench
