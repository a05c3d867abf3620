#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::test {

using namespace detail;

/// What is wrong, a line each; empty: nothing.
using Failures = std::vector<std::string>;

/// An operation, or a composition of some, on inputs of given shapes.
struct OracleCase {
  std::string name;
  std::vector<SampleInput> inputs;
  /// What is under test: operations on DTensors.
  std::function<std::vector<DTensor>(const std::vector<DTensor>&)> run;
  /// The same on whole tensors, without the runtime. May throw where the case makes no sense.
  std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> reference;
  const OpInfo* info = nullptr;         ///< null for a composition
  std::shared_ptr<const void> op = {};  ///< attributes
};

/// The case's numbers: what goes in and what must come out.
struct Reference {
  std::vector<at::Tensor> in;
  std::vector<at::Tensor> out;
  std::vector<at::Tensor> cotangents;  ///< undefined for an output that is not floating
  std::vector<at::Tensor> gradients;   ///< undefined for an input that wants none
  double min_tolerance = 0;            ///< relative and absolute, whatever the dtype
};

struct OracleStats {
  int64_t ops = 0, samples = 0, layouts = 0;
  OracleStats& operator+=(const OracleStats& other);
  /// "62 ops, 310 samples, 51200 layouts".
  std::string to_string() const;
};

/// The samples of an operation.
std::vector<OracleCase> op_cases(const OpInfo& info);

/// The case with one extent at a time, of all axes of one factor, changed to 0, 1 and those of
/// `extents`; without what the operation refuses.
std::vector<OracleCase> derived_cases(const OracleCase& c, const std::vector<int64_t>& extents);

/// " [3, 4] [4]": the shapes of its inputs.
std::string shapes_of(const OracleCase& c);

/// Inputs that a gradient is checked for.
std::vector<size_t> sources_of(const OracleCase& c);

/// The case's numbers; others for another seed.
std::vector<at::Tensor> random_inputs(const OracleCase& c, uint64_t seed = 0);

/// Runs the reference; its gradients are those of a mesh of one device, and must agree with finite
/// differences of the reference.
Reference make_reference(const OracleCase& c, Failures& failures);

/// Outputs and gradients on one mesh, under one policy, in at most `limit` of the assignments of
/// layouts to inputs.
Failures check_layouts(const OracleCase& c, const Reference& reference, const Mesh& mesh,
                       BlockPolicy policy, size_t limit, OracleStats& stats);

/// For every assignment of one-axis layouts: decides by running forward on every shard alone
/// whether communication is needed, and compares with what the runtime does.
Failures check_communication(const OracleCase& c, const Reference& reference, const Mesh& mesh);

/// Everything for a case: the reference, meshes [2], [3], [4] and [2,2], communication.
Failures check_case(const OracleCase& c, OracleStats& stats);
/// For every sample of an operation, and those derived from them.
Failures check_op(const OpInfo& info, OracleStats& stats);

/// Outputs and gradients of an operation's samples on a mesh whose devices several processes hold.
Failures check_processes(const OpInfo& info, int ranks, const MeshDims& dims, size_t limit,
                         OracleStats& stats);

/// The failures as one text, the first ten.
std::string joined(const Failures& failures);

/// True if TESSERA_ORACLE=full: every assignment everywhere.
bool full_oracle();

/// Blocks of a committed table, by their heading: what is equal for several operations stands once,
/// under all of their names.
std::string grouped(const std::vector<std::pair<std::string, std::string>>& blocks);

/// Plans of an operation's first sample on mesh batch=2, model=2 for one-axis input layouts.
std::string plan_lines(const OpInfo& info);

/// Bytes that each of four devices receives, forward and backward, for every assignment of layouts
/// to an operation's inputs that costs any.
std::string byte_lines(const OpInfo& info);
std::string byte_lines(const OpInfo& info, BlockPolicy policy);

}  // namespace tessera::test
