#include <tessera/framework/data/dataset.hpp>

#include <algorithm>
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

}  // namespace

RowPart local_part(int64_t rows, const LayoutMap& layouts) {
  const Mesh& mesh = layouts.mesh();
  if (mesh.is_local()) return {{0, rows}, rows};
  if (mesh.local_ids().empty()) return {{0, 0}, rows};
  Interval all{rows, 0};
  std::vector<Layout> data_layouts;
  for (const auto& [name, spec] : layouts.data()) {
    if (spec.empty()) return {{0, rows}, rows};
    data_layouts.emplace_back(spec, mesh);
  }
  for (const char* name : {"x", "y", "sample_weight"}) {
    if (!layouts.data().count(name)) data_layouts.push_back(layouts.data_layout(name, 1));
  }
  for (const Layout& layout : data_layouts) {
    const Interval local = axis_interval(layout, 0, rows, mesh.local_box());
    if (!local.empty()) all = {std::min(all.lo, local.lo), std::max(all.hi, local.hi)};
  }
  return {all.lo < all.hi ? all : Interval{0, 0}, rows};
}

Examples Dataset::get_placed(std::span<const int64_t> rows, const LayoutMap& layouts) const {
  const RowPart part = local_part(static_cast<int64_t>(rows.size()), layouts);
  if (part.rows.size() == part.of) return get(rows);
  const bool none = part.rows.empty();
  const auto first = static_cast<size_t>(part.rows.lo);
  Examples batch = get(rows.subspan(first, none ? 1 : static_cast<size_t>(part.rows.size())));
  if (none) {
    for (auto* tensors : {&batch.x, &batch.y, &batch.sample_weight}) drop_rows(*tensors);
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
