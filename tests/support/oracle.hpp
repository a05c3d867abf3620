#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::test {

using namespace detail;

/// Failures, a line each; empty if there are none.
using Failures = std::vector<std::string>;

/// An operation, or a composition of several, on inputs of given shapes.
struct OracleCase {
  std::string name;
  std::vector<SampleInput> inputs;
  /// The function under test, on DTensors.
  std::function<std::vector<DTensor>(const std::vector<DTensor>&)> run;
  /// Its reference on full tensors, without the runtime. May throw for invalid cases.
  std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> reference;
  const OpInfo* info = nullptr;         ///< null for a composition
  std::shared_ptr<const void> op = {};  ///< the operation's attributes
};

/// The case's numbers: inputs and expected results.
struct Reference {
  std::vector<at::Tensor> in;
  std::vector<at::Tensor> out;
  std::vector<at::Tensor> cotangents;  ///< undefined for an output that is not floating
  std::vector<at::Tensor> gradients;   ///< undefined for an input without a gradient
  double min_tolerance = 0;            ///< relative and absolute, whatever the dtype
};

struct OracleStats {
  int64_t ops = 0, samples = 0, layouts = 0;
  OracleStats& operator+=(const OracleStats& other);
  /// Returns "62 ops, 310 samples, 51200 layouts".
  std::string to_string() const;
};

/// Returns the samples of an operation.
std::vector<OracleCase> op_cases(const OpInfo& info);

/// Returns the case with the extent of one factor at a time, on all of its axes, changed to 0, 1
/// and those of `extents`, without cases that the operation refuses.
std::vector<OracleCase> derived_cases(const OracleCase& c, const std::vector<int64_t>& extents);

/// Returns the shapes of its inputs: " [3, 4] [4]".
std::string shapes_of(const OracleCase& c);

/// Returns the inputs whose gradients are checked.
std::vector<size_t> sources_of(const OracleCase& c);

/// Returns the case's numbers, which depend on the seed.
std::vector<at::Tensor> random_inputs(const OracleCase& c, uint64_t seed = 0);

/// Runs the reference. Its gradients are those of a mesh of one device, and must agree with finite
/// differences of the reference.
Reference make_reference(const OracleCase& c, Failures& failures);

/// Checks outputs and gradients on one mesh, under one policy, in at most `limit` assignments of
/// layouts to inputs.
Failures check_layouts(const OracleCase& c, const Reference& reference, const Mesh& mesh,
                       BlockPolicy policy, size_t limit, OracleStats& stats);

/// For every assignment of one-axis layouts, decides by running forward on every shard alone
/// whether communication is needed, and compares with the runtime.
Failures check_communication(const OracleCase& c, const Reference& reference, const Mesh& mesh);

/// Checks everything for a case: the reference, meshes [2], [3], [4] and [2,2], communication.
Failures check_case(const OracleCase& c, OracleStats& stats);
/// Checks every sample of an operation, and those derived from them.
Failures check_op(const OpInfo& info, OracleStats& stats);

/// Checks outputs and gradients of an operation's samples on a mesh whose devices belong to several
/// processes.
Failures check_processes(const OpInfo& info, int ranks, const MeshDims& dims, size_t limit,
                         OracleStats& stats);

/// Returns the first ten failures as one text.
std::string joined(const Failures& failures);

/// Returns how many assignments of layouts the oracle tries where a daily run tries `daily`:
/// 24 times as many with TESSERA_ORACLE=night, every one with TESSERA_ORACLE=full.
size_t limit_of_oracle(size_t daily);

/// Returns the operations named by TESSERA_ORACLE_OP, with commas between them, else every
/// registered one, or those of the part that TESSERA_ORACLE_PART=1/2 or 2/2 names. Throws
/// ConfigError for an unknown name and for no part.
std::vector<const OpInfo*> selected_ops();

/// Returns the blocks of a committed table by their headings; blocks that are equal for several
/// operations appear once, under all of their names.
std::string grouped(const std::vector<std::pair<std::string, std::string>>& blocks);

/// Returns the plans of an operation's first sample on mesh batch=2, model=2 for one-axis input
/// layouts.
std::string plan_lines(const OpInfo& info);

/// Returns the bytes that each of four devices receives, forward and backward, for every assignment
/// of layouts to an operation's inputs that communicates.
std::string byte_lines(const OpInfo& info);
std::string byte_lines(const OpInfo& info, BlockPolicy policy);

}  // namespace tessera::test
