#include <tessera/framework/comm/internal/communicator.hpp>

#include <limits>
#include <set>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/comm/world_size_invariant.hpp>
#include <tessera/framework/mesh/internal/hosting.hpp>
#include <tessera/framework/mesh/internal/view.hpp>

namespace tessera::detail {
namespace {

void check_placement(const Mesh& mesh, const Communicator& communicator) {
  const int rank = communicator.rank(), ranks = communicator.size();
  const int64_t first = mesh.local_ids().front(), last = mesh.local_ids().back();
  // For a mesh without a communicator (ranks == 1), the local communicator throws.
  if (ranks == 1 || mesh.is_local()) return;
  if (owner_of(mesh, first) == rank && owner_of(mesh, last) == rank) return;
  const std::vector<int64_t> fit = devices_of(mesh, rank);
  const std::string none = "no devices";
  throw MeshError("mesh",
                  str("rank ", rank, " of ", ranks, " holds ",
                      fit.empty() ? none : str("devices ", fit.front(), " to ", fit.back()),
                      " of mesh ", mesh.describe()),
                  str("devices ", first, " to ", last),
                  hosting_of(mesh)
                      ? "give each rank the devices that the mesh's hosting names for it"
                      : "give each rank its run of neighbouring ids, in the order of the ranks");
}

}  // namespace

void wait(const WorkPtr& work) {
  if (work) work->wait();
}

void reduce_out(Reduce kind, at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  switch (kind) {
    case Reduce::sum:
      at::add_out(out, a, b);
      return;
    case Reduce::max:
      at::maximum_out(out, a, b);
      return;
    case Reduce::min:
      at::minimum_out(out, a, b);
      return;
  }
}

void reduce_into(Reduce kind, at::Tensor& a, const at::Tensor& b) {
  if (kind != Reduce::sum) return reduce_out(kind, a, a, b);
  a.add_(b);
}

at::Tensor reduce_identity(Reduce kind, at::IntArrayRef shape, at::TensorOptions options) {
  if (kind == Reduce::sum) return at::zeros(shape, options);
  const at::ScalarType type = c10::typeMetaToScalarType(options.dtype());
  if (type == at::kBool) return at::full(shape, kind == Reduce::min, options);
  const bool lowest = kind == Reduce::max;
  if (at::isFloatingType(type)) {
    const double inf = std::numeric_limits<double>::infinity();
    return at::full(shape, lowest ? -inf : inf, options);
  }
  int64_t low = std::numeric_limits<int64_t>::min();
  int64_t high = std::numeric_limits<int64_t>::max();
  if (type == at::kInt) low = std::numeric_limits<int32_t>::min(), high = INT32_MAX;
  if (type == at::kShort) low = INT16_MIN, high = INT16_MAX;
  if (type == at::kChar) low = INT8_MIN, high = INT8_MAX;
  if (type == at::kByte) low = 0, high = UINT8_MAX;
  return at::full(shape, lowest ? low : high, options);
}

at::Tensor reduce_all(Reduce kind, const std::vector<at::Tensor>& inputs) {
  if (inputs.size() == 1) return inputs[0];
  const ProfileSpan span(SpanKind::aten, "reduce");
  at::Tensor out;
  switch (kind) {
    case Reduce::sum:
      out = at::add(inputs[0], inputs[1]);
      break;
    case Reduce::max:
      out = at::maximum(inputs[0], inputs[1]);
      break;
    case Reduce::min:
      out = at::minimum(inputs[0], inputs[1]);
      break;
  }
  for (size_t i = 2; i < inputs.size(); ++i) reduce_into(kind, out, inputs[i]);
  return out;
}

std::string describe_transfer(const CollectiveCall& call) {
  const std::string along = call.mesh.names(call.dims);
  return str(dtype_name(call.dtype), " ", to_string(call.shape), along.empty() ? "" : " along ",
             along);
}

Communicator& communicator_of(const Mesh& mesh) {
  static const std::shared_ptr<Communicator> local = local_communicator();
  return mesh.communicator() ? *mesh.communicator() : *local;
}

bool is_first_rank(const Mesh& mesh) {
  if (mesh.is_view()) return is_first_rank(mesh.root());
  return mesh.is_local() || communicator_of(mesh).rank() == 0;
}

int owner_of(const Mesh& mesh, int64_t device) {
  if (const Hosting* hosting = hosting_of(mesh)) return hosting->owner(device);
  const int64_t ranks = communicator_of(mesh).size();
  return static_cast<int>(((device + 1) * ranks - 1) / mesh.size());
}

std::vector<int64_t> devices_of(const Mesh& mesh, int rank) {
  if (const Hosting* hosting = hosting_of(mesh)) return hosting->devices_of(rank);
  const Interval run = shard_interval(mesh.size(), communicator_of(mesh).size(), rank);
  std::vector<int64_t> ids;
  for (int64_t id = run.lo; id < run.hi; ++id) ids.push_back(id);
  return ids;
}

std::vector<int> ranks_of(const Mesh& mesh) {
  if (!mesh.is_view()) return {};
  std::set<int> ranks;
  for (int64_t id : device_ids(mesh)) ranks.insert(owner_of(mesh, id));
  if (std::ssize(ranks) == communicator_of(mesh).size()) return {};
  return {ranks.begin(), ranks.end()};
}

bool is_evenly_hosted(const Mesh& mesh) {
  if (mesh.is_view()) return is_evenly_hosted(mesh.root());
  if (const Hosting* hosting = hosting_of(mesh)) return hosting->is_even();
  const auto devices = std::ssize(mesh.local_ids());
  return mesh.is_local() || devices * communicator_of(mesh).size() == mesh.size();
}

Group make_group(const Mesh& mesh, const std::vector<int>& dims,
                 const std::vector<int64_t>& members) {
  const Communicator& communicator = communicator_of(mesh);
  check_placement(mesh, communicator);
  Group group;
  group.dims = dims;
  group.tree = world_size_invariant();
  int64_t count = 1;
  for (int dim : dims) count *= members[static_cast<size_t>(dim)];
  std::vector<int64_t> at = mesh.coordinates(mesh.local_ids().front());
  for (int64_t m = 0; m < count; ++m) {
    int64_t rest = m;
    bool here = true;
    for (size_t i = dims.size(); i-- > 0;) {
      const size_t d = static_cast<size_t>(dims[i]);
      const int64_t coordinate = rest % members[d];
      rest /= members[d];
      at[d] = coordinate * mesh.dim_size(dims[i]) / members[d];
      here = here && at[d] >= mesh.local_box()[d].lo && at[d] < mesh.local_box()[d].hi;
    }
    const int owner = here ? communicator.rank() : owner_of(mesh, mesh.id(at));
    if (communicator.size() > 1 && owner >= communicator.size()) {
      throw MeshError("mesh", str("the mesh ", mesh.describe(), " is of the processes that run"),
                      str("rank ", owner, " of ", communicator.size()),
                      "in an elastic run, use the mesh of a weight (layout().mesh()) after fit()");
    }
    group.owner.push_back(owner);
    if (here) group.local.push_back(m);
  }
  return group;
}

}  // namespace tessera::detail
