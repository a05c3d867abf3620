#include <tessera/framework/base/error.hpp>

#include <ATen/Parallel.h>

#include <mutex>

#include "tests/support/layouts.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/oracle_run.hpp"
#include "tests/support/thread_communicator.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace tessera::test {

using namespace detail;

namespace {

bool passes(const OracleCase& c, Passes one) {
  if (!c.info) return false;
  if (c.info->moves_blocks) return true;
  Specs specs;
  for (const SampleInput& input : c.inputs) specs.push_back({input.shape, input.dtype});
  const Passes own = c.info->rule(c.op.get(), specs).passes;
  return own == one || own == Passes::all;
}

/// Returns the reductions that an input may be partial in.
std::vector<Reduce> kinds_of(const OracleCase& c, size_t input) {
  std::vector<Reduce> kinds;
  const at::ScalarType dtype = c.inputs[input].dtype;
  const bool floating = at::isFloatingType(dtype);
  if (floating) kinds.push_back(Reduce::sum);
  if (!floating && dtype != at::kLong && dtype != at::kBool) return kinds;
  if (!floating || passes(c, Passes::maxima)) kinds.push_back(Reduce::max);
  if (!floating || passes(c, Passes::minima)) kinds.push_back(Reduce::min);
  return kinds;
}

std::vector<std::vector<Layout>> lists_of(const OracleCase& c, const Mesh& mesh) {
  std::vector<std::vector<Layout>> lists;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    lists.push_back(layouts_of(mesh, int64_t(c.inputs[i].shape.size()), kinds_of(c, i)));
  }
  return lists;
}

void append(Failures& all, Failures more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// Runs a part of the oracle; an exception is a failure.
template <class Function>
void guarded(const OracleCase& c, Failures& failures, const Function& function) {
  try {
    function();
  } catch (const std::exception& e) {
    failures.push_back(c.name + shapes_of(c) + " throws: " + reason(e));
  }
}

/// Whether the operation accepts the case; it may refuse, for example, indices beyond a shorter
/// axis.
bool accepted(const OracleCase& c) {
  try {
    c.reference(random_inputs(c));
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Checks a derived case in fewer layouts, because the samples have covered the rest.
void check_derived(const OracleCase& c, Failures& failures, OracleStats& stats) {
  guarded(c, failures, [&] {
    if (!accepted(c)) return;
    const Reference reference = make_reference(c, failures);
    if (!failures.empty()) return;
    ++stats.samples;
    const size_t limit = limit_of_oracle(4);
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{3}, {4}, {2, 2}}) {
      for (BlockPolicy policy : {BlockPolicy::per_device, BlockPolicy::per_worker}) {
        append(failures, check_layouts(c, reference, virtual_mesh(sizes), policy, limit, stats));
      }
    }
  });
}

}  // namespace

Failures check_layouts(const OracleCase& c, const Reference& reference, const Mesh& mesh,
                       BlockPolicy policy, size_t limit, OracleStats& stats) {
  const BlockPolicyScope scope(policy);
  const uint64_t seed = text_seed(c.name + shapes_of(c));
  Failures failures;
  uint64_t number = 0;
  for (const std::vector<Layout>& layouts : choices(lists_of(c, mesh), limit, seed)) {
    const uint64_t own = mix(seed, ++number);
    // Marks inputs as Variables where there are enough choices for all kinds of values to meet all
    // layouts.
    const uint32_t parameters = mesh.rank() > 1 ? uint32_t(own >> 32) & uint32_t(own >> 16) : 0;
    const Outcome outcome = run_case(c, reference, layouts, own, parameters);
    ++stats.layouts;
    if (outcome.wrong.empty()) continue;
    failures.push_back(str(c.name, shapes_of(c), " on ", short_name(mesh), " ", to_string(policy),
                           ", ", short_name(layouts), ": ", outcome.wrong));
    if (failures.size() == 3) break;
  }
  return failures;
}

Failures check_processes(const OpInfo& info, int ranks, const MeshDims& dims, size_t limit,
                         OracleStats& stats) {
  Failures failures;
  for (const OracleCase& c : op_cases(info)) {
    const Reference reference = make_reference(c, failures);
    ++stats.samples;
    std::mutex mutex;
    try {
      run_ranks(ranks, [&](int rank, const std::shared_ptr<Communicator>& communicator) {
        OracleStats own;
        const Failures wrong = check_layouts(c, reference, rank_mesh(dims, communicator),
                                             BlockPolicy::per_worker, limit, own);
        const std::lock_guard<std::mutex> lock(mutex);
        if (rank == 0) stats += own;
        append(failures, wrong);
      });
    } catch (const std::exception& e) {
      failures.push_back(c.name + " in several processes throws: " + reason(e));
    }
  }
  return failures;
}

Failures check_case(const OracleCase& c, OracleStats& stats) {
  Failures failures;
  guarded(c, failures, [&] {
    const Reference reference = make_reference(c, failures);
    if (!failures.empty()) return;
    ++stats.samples;
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2}, {3}, {4}, {2, 2}}) {
      const Mesh mesh = virtual_mesh(sizes);
      // Two threads take more time than one on blocks of a few numbers: they try fewer layouts.
      at::set_num_threads(mesh.rank() > 1 ? 2 : 1);
      // On more devices the same kinds of assignments come again.
      const size_t limit = limit_of_oracle(mesh.rank() > 1 ? 8 : sizes[0] > 2 ? 16 : 40);
      for (BlockPolicy policy : {BlockPolicy::per_device, BlockPolicy::per_worker}) {
        append(failures, check_layouts(c, reference, mesh, policy, limit, stats));
      }
    }
    // Operations that communicate during forward are not chosen when they need not be.
    if (c.info && c.info->forward_all) return;
    for (int64_t devices : {2, 3}) {
      if (c.info) append(failures, check_communication(c, reference, virtual_mesh({devices})));
    }
  });
  return failures;
}

Failures check_op(const OpInfo& info, OracleStats& stats) {
  Failures failures;
  ++stats.ops;
  size_t number = 0;
  for (const OracleCase& c : op_cases(info)) {
    append(failures, check_refusal(c));
    append(failures, check_case(c, stats));
    if (++number > 2 || !failures.empty()) continue;
    for (const OracleCase& derived : derived_cases(c, {2, 3}))
      check_derived(derived, failures, stats);
  }
  if (number == 0) failures.push_back(std::string(info.name) + " has no sample");
  return failures;
}

}  // namespace tessera::test
