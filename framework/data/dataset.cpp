#include <tessera/framework/data/dataset.hpp>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>

namespace tessera {

using namespace detail;

namespace {

void drop_rows(std::vector<at::Tensor>& tensors) {
  for (at::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.dim() > 0) tensor = tensor.narrow(0, 0, 0);
  }
}

/// Returns the layouts of the first axis of data; none if some data have no rows.
std::vector<Layout> row_layouts(const LayoutMap& layouts) {
  std::vector<Layout> all;
  for (const auto& [name, spec] : layouts.data()) {
    if (spec.empty()) return {};
    all.emplace_back(spec, layouts.mesh());
  }
  for (const char* name : {"x", "y", "sample_weight"}) {
    if (!layouts.data().count(name)) all.push_back(layouts.data_layout(name, 1));
  }
  return all;
}

/// The rows of a batch that this process's devices hold.
struct HeldRows {
  std::vector<bool> held;  ///< by row: with a pipeline, some of each microbatch
  RowPart part;            ///< from the first device's first row to the last one's last
};

HeldRows held_rows(int64_t rows, const LayoutMap& layouts) {
  const Mesh& mesh = layouts.mesh();
  const HeldRows all = {std::vector<bool>(static_cast<size_t>(rows), true), {{0, rows}, rows}};
  if (mesh.is_local()) return all;
  HeldRows some = {std::vector<bool>(all.held.size()), {{0, 0}, rows}};
  if (mesh.local_ids().empty()) return some;
  const std::vector<Layout> list = row_layouts(layouts);
  if (list.empty()) return all;
  const int64_t microbatches = layouts.microbatches_of(rows);
  Interval whole = {rows, 0};
  for (const Layout& layout : list) {
    // The positions of this process among those that share the rows of a microbatch.
    const int64_t shards = layout.num_shards(0), parts = microbatches * shards;
    const Interval here = axis_interval(layout, 0, shards, mesh.local_box());
    const auto begin = [&](int64_t microbatch) {
      return shard_interval(rows, parts, microbatch * shards + here.lo).lo;
    };
    const auto end = [&](int64_t microbatch) {
      return shard_interval(rows, parts, microbatch * shards + here.hi - 1).hi;
    };
    for (int64_t i = 0; i < microbatches; ++i) {
      std::fill(some.held.begin() + begin(i), some.held.begin() + end(i), true);
    }
    const Interval own = {begin(0), end(microbatches - 1)};
    if (!own.empty()) whole = {std::min(whole.lo, own.lo), std::max(whole.hi, own.hi)};
  }
  if (!whole.empty()) some.part.rows = whole;
  return some;
}

/// Returns a tensor of `rows` rows that has those of another at these positions, and 0 elsewhere.
at::Tensor spread(const at::Tensor& tensor, const std::vector<int64_t>& positions, int64_t rows) {
  std::vector<int64_t> shape = tensor.sizes().vec();
  // What has other rows is refused later, by name.
  if (shape.empty() || shape[0] != std::ssize(positions)) return tensor;
  shape[0] = rows;
  at::Tensor all = at::zeros(shape, tensor.options());
  return all.index_copy_(0, at::tensor(positions, at::kLong), tensor);
}

}  // namespace

RowPart local_part(int64_t rows, const LayoutMap& layouts) { return held_rows(rows, layouts).part; }

Examples Dataset::get_placed(std::span<const int64_t> rows, const LayoutMap& layouts) const {
  const auto [held, part] = held_rows(static_cast<int64_t>(rows.size()), layouts);
  std::vector<int64_t> wanted, positions;
  for (int64_t row = part.rows.lo; row < part.rows.hi; ++row) {
    if (!held[static_cast<size_t>(row)]) continue;
    wanted.push_back(rows[static_cast<size_t>(row)]);
    positions.push_back(row - part.rows.lo);
  }
  if (std::ssize(wanted) == part.of) return get(rows);
  Examples batch = get(wanted.empty() ? rows.first(1) : std::span<const int64_t>(wanted));
  for (auto* tensors : {&batch.x, &batch.y, &batch.sample_weight}) {
    if (wanted.empty()) drop_rows(*tensors);
    // Between the rows of two microbatches are rows of other processes.
    if (std::ssize(positions) == part.rows.size()) continue;
    for (at::Tensor& tensor : *tensors) tensor = spread(tensor, positions, part.rows.size());
  }
  batch.part = part;
  return batch;
}

BatchFunction StreamDataset::start_at(int64_t epoch, int64_t first_step, const LayoutMap&) const {
  BatchFunction batches = start(epoch);
  if (!batches || first_step == 0) return batches;
  return [batches, first_step]() mutable -> std::optional<Examples> {
    for (; first_step > 0; --first_step) {
      if (!batches()) return std::nullopt;
    }
    return batches();
  };
}

const std::shared_ptr<const Dataset>& DatasetHandle::rows(const std::string& where) const {
  if (rows_) return rows_;
  throw ConfigError(where, "the rows can be read in any order",
                    stream_ ? "a stream of batches" : "no data", "pass tensors or a Dataset");
}

Examples all_rows(const DatasetHandle& data) {
  if (!data.stream()) {
    const Dataset& rows = *data.rows("all_rows");
    std::vector<int64_t> indices(static_cast<size_t>(rows.size()));
    std::iota(indices.begin(), indices.end(), 0);
    return rows.get(indices);
  }
  if (data.stream()->endless()) {
    throw ConfigError("all_rows", "data that end", "a stream without end", "take() a part of it");
  }
  std::vector<Examples> batches;
  const BatchFunction next = data.stream()->start(0);
  while (std::optional<Examples> batch = next()) batches.push_back(std::move(*batch));
  Examples all;
  using Member = std::vector<at::Tensor> Examples::*;
  for (const Member member : {&Examples::x, &Examples::y, &Examples::sample_weight}) {
    for (size_t t = 0; !batches.empty() && t < (batches[0].*member).size(); ++t) {
      std::vector<at::Tensor> parts;
      for (const Examples& batch : batches) parts.push_back((batch.*member)[t]);
      (all.*member).push_back(at::cat(parts));
    }
  }
  return all;
}

}  // namespace tessera
