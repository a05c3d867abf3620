#include <tessera/framework/tensor/internal/collective_permute.hpp>

#include <map>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

namespace tessera::detail {
namespace {

/// Alignment in bytes that kernels prefer.
constexpr int64_t packed_alignment = 64;

int64_t spec_bytes(const PackedSpec& spec) {
  return numel(spec.shape) * static_cast<int64_t>(c10::elementSize(spec.dtype));
}

int64_t aligned(int64_t bytes) {
  return (bytes + packed_alignment - 1) / packed_alignment * packed_alignment;
}

DimMask bits_of(const std::vector<int>& dims) {
  DimMask mask = 0;
  for (int dim : dims) mask |= 1u << dim;
  return mask;
}

}  // namespace

int64_t packed_bytes(const std::vector<PackedSpec>& specs) {
  int64_t bytes = 0;
  for (const PackedSpec& spec : specs) bytes += aligned(spec_bytes(spec));
  return bytes;
}

std::vector<at::Tensor> unpacked(const at::Tensor& bytes, const std::vector<PackedSpec>& specs) {
  std::vector<at::Tensor> tensors;
  int64_t offset = 0;
  for (const PackedSpec& spec : specs) {
    const int64_t size = spec_bytes(spec);
    tensors.push_back(bytes.narrow(0, offset, size).view(spec.dtype).view(spec.shape));
    offset += aligned(size);
  }
  return tensors;
}

at::Tensor packed(const std::vector<at::Tensor>& tensors) {
  std::vector<PackedSpec> specs;
  for (const at::Tensor& tensor : tensors) {
    specs.push_back({tensor.sizes().vec(), tensor.scalar_type()});
  }
  const at::Tensor bytes =
      at::empty({packed_bytes(specs)}, tensors.front().options().dtype(at::kByte));
  const std::vector<at::Tensor> views = unpacked(bytes, specs);
  for (size_t i = 0; i < tensors.size(); ++i) views[i].copy_(tensors[i]);
  return bytes;
}

PermuteGroup::PermuteGroup(const Mesh& mesh, const std::vector<int>& dims, const Groups& groups,
                           const std::vector<std::vector<int64_t>>& block_groups,
                           const Shape& shape, at::ScalarType dtype)
    : mesh_(mesh), dims_(dims), groups_(groups), shape_(shape), dtype_(dtype) {
  for (int dim : dims_) size_ *= groups_[size_t(dim)];
  std::map<std::vector<int64_t>, std::map<int64_t, size_t>> rows;
  for (size_t b = 0; b < block_groups.size(); ++b) {
    std::vector<int64_t> coordinates = block_groups[b];
    int64_t member = 0;
    for (int dim : dims_) {
      member = member * groups_[size_t(dim)] + coordinates[size_t(dim)];
      coordinates[size_t(dim)] = 0;
    }
    members_.push_back(member);
    rows[coordinates][member] = b;
  }
  for (const auto& [coordinates, row] : rows) {
    rows_.emplace_back();
    for (const auto& [member, block] : row) rows_.back().push_back(block);
  }
}

/// Announces the collective to the communicator, which checks that all ranks run the same one.
void PermuteGroup::announce() const {
  if (mesh_.is_local()) return;
  communicator_of(mesh_).begin({.op = CommOp::collective_permute,
                                .mesh = mesh_,
                                .dims = bits_of(dims_),
                                .dtype = dtype_,
                                .shape = shape_});
}

PermuteGroup::Transfer PermuteGroup::start(const std::vector<int64_t>& from,
                                           std::vector<at::Tensor> tensors,
                                           const std::vector<int64_t>& bytes) const {
  announce();
  Transfer transfer;
  transfer.tensors_ = std::move(tensors);
  if (transfer.tensors_.empty() || size_ == 1) return transfer;
  Communicator& communicator = communicator_of(mesh_);
  const Group group = make_group(mesh_, dims_, groups_);
  std::vector<size_t> to(from.size());
  for (size_t m = 0; m < from.size(); ++m) to[size_t(from[m])] = m;
  for (const std::vector<size_t>& blocks : rows_) {
    auto row = std::make_unique<Transfer::Row>();
    row->blocks = blocks;
    row->send.assign(blocks.size(), std::vector<at::Tensor>(from.size()));
    row->recv = row->send;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const size_t block = blocks[i], me = size_t(members_[block]), source = size_t(from[me]);
      const at::Tensor& mine = transfer.tensors_[block];
      const bool here = group.owner[source] == communicator.rank();
      row->from.push_back(source);
      row->aliases.push_back(here && source != me);
      if (mine.numel() > 0) row->send[i][to[me]] = mine;
      if (bytes[block] == 0 || here) continue;
      const DeviceMemory::For device{int64_t(block)};
      row->recv[i][source] = at::empty({bytes[block]}, mine.options());
    }
    row->work = communicator.all_to_all(group, row->send, row->recv);
    transfer.rows_.push_back(std::move(row));
  }
  return transfer;
}

std::vector<at::Tensor> PermuteGroup::Transfer::wait() {
  std::vector<at::Tensor> received = std::move(tensors_);
  for (const std::unique_ptr<Row>& row : rows_) {
    detail::wait(row->work);
    for (size_t i = 0; i < row->blocks.size(); ++i) {
      at::Tensor& mine = received[row->blocks[i]];
      const DeviceMemory::For device{int64_t(row->blocks[i])};
      const at::Tensor& theirs = row->recv[i][row->from[i]];
      const at::Tensor moved =
          theirs.defined() ? moved_to(theirs, mine.device()) : at::empty({0}, mine.options());
      // A real device would have its own copy besides the sender's.
      const bool copied =
          block_policy() == BlockPolicy::per_device && row->aliases[i] && moved.is_same(theirs);
      mine = copied ? moved.clone() : moved;
    }
  }
  rows_.clear();
  return received;
}

void log_permute(const Mesh& mesh, const std::vector<int>& dims, double bytes) {
  CommLog* log = CommLogScope::current();
  const DimMask mask = bits_of(dims);
  if (mesh.size_of(mask) <= 1 || bytes == 0) return;
  thread_state().communicated = true;
  if (!log) return;
  log->add(
      {CommOp::collective_permute, mesh.names(mask), mesh.size_of(mask), int64_t(bytes), bytes});
}

}  // namespace tessera::detail
