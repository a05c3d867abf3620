#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/propagate.hpp>

#include <algorithm>
#include <map>

#include "tests/support/layouts.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/oracle_run.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace tessera::test {

using namespace detail;

namespace {

std::vector<Reduce> kinds_for(at::ScalarType dtype) {
  if (at::isFloatingType(dtype)) return {Reduce::sum};
  return {};
}

/// Whether a layout is replicated, shards one axis over one dimension, or is a partial sum over
/// one.
bool is_simple(const Layout& layout) {
  const DimMask used = layout.used_dims();
  return (used & (used - 1)) == 0;
}

/// Whether this assignment represents those that differ only in the names of the dimensions, with
/// at most two inputs that are not replicated.
bool stands_for_others(const std::vector<Layout>& layouts) {
  int used = 0;
  bool batch_first = true;
  for (const Layout& layout : layouts) {
    if (layout.used_dims() == 0) continue;
    if (used == 0) batch_first = layout.used_dims() == 1;
    ++used;
  }
  return used <= 2 && batch_first;
}

/// Returns "layouts -> out", or "layouts => resharded -> out" if an input is resharded first.
std::string plan_line(const std::vector<Layout>& requested, const std::vector<Layout>& resharded,
                      const std::vector<Layout>& out) {
  const std::string change = requested == resharded ? "" : " => " + short_name(resharded);
  return "  " + short_name(requested) + change + " -> " + short_name(out) + "\n";
}

std::string plan_of(const OracleCase& c, const std::vector<Layout>& layouts) {
  if (c.info->moves_blocks) {
    std::vector<DTensor> in;
    for (size_t i = 0; i < layouts.size(); ++i) {
      in.push_back(make_value(random_values(c.inputs[i], 1), layouts[i], 1));
    }
    std::vector<Layout> out;
    for (const DTensor& result : c.run(in)) out.push_back(result.layout());
    return plan_line(layouts, layouts, out);
  }
  std::vector<ShardingPtr> in;
  for (size_t i = 0; i < layouts.size(); ++i) {
    in.push_back(intern(c.inputs[i].shape, c.inputs[i].dtype, layouts[i]));
  }
  const Propagation plan = plan_op(*c.info, c.op.get(), in);
  return plan_line(layouts, plan.inputs, plan.outputs);
}

std::string number(double bytes) { return str(int64_t(bytes)); }

}  // namespace

std::string grouped(const std::vector<std::pair<std::string, std::string>>& blocks) {
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& [name, text] : blocks) names[text].push_back(name);
  std::string out;
  for (const auto& [name, text] : blocks) {
    std::vector<std::string>& same = names[text];
    if (same.empty()) continue;
    std::string line;
    for (const std::string& other : same) {
      if (line.size() + other.size() > 96) {
        out += line + ",\n";
        line.clear();
      }
      line += (line.empty() ? "" : ", ") + other;
    }
    out += line + "\n" + text + "\n";
    same.clear();
  }
  return out;
}

std::string plan_lines(const OpInfo& info) {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const std::vector<OracleCase> cases = op_cases(info);
  if (cases.empty()) return "";
  const OracleCase& c = cases.front();
  std::vector<std::vector<Layout>> lists;
  for (const SampleInput& input : c.inputs) {
    std::vector<Layout> simple;
    for (Layout& layout : layouts_of(mesh, int64_t(input.shape.size()), kinds_for(input.dtype))) {
      if (is_simple(layout)) simple.push_back(std::move(layout));
    }
    lists.push_back(std::move(simple));
  }
  std::string text = " " + shapes_of(c) + "\n";
  for (const std::vector<Layout>& layouts : choices(lists, 4096, 1)) {
    if (stands_for_others(layouts)) text += plan_of(c, layouts);
  }
  return text;
}

std::string byte_lines(const OpInfo& info) { return byte_lines(info, BlockPolicy::per_shard); }

std::string byte_lines(const OpInfo& info, BlockPolicy policy) {
  const BlockPolicyScope scope(policy);
  const Mesh mesh = virtual_mesh({4});
  std::string text;
  for (const OracleCase& c : op_cases(info)) {
    Failures ignored;
    const Reference reference = make_reference(c, ignored);
    std::vector<std::vector<Layout>> lists;
    for (const SampleInput& input : c.inputs) {
      lists.push_back(layouts_of(mesh, int64_t(input.shape.size()), kinds_for(input.dtype)));
    }
    text += " " + shapes_of(c) + "\n";
    for (const std::vector<Layout>& layouts : choices(lists, 64, text_seed(c.name))) {
      const Bytes bytes = measure_bytes(c, reference, layouts);
      if (bytes.forward + bytes.backward == 0) continue;
      text += "  " + short_name(layouts) + ": " + number(bytes.forward) + " " +
              number(bytes.backward) + "\n";
    }
  }
  return text;
}

}  // namespace tessera::test
