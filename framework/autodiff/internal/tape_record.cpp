#include <tessera/framework/autodiff/internal/tape_record.hpp>

#include <algorithm>

#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera::detail {

namespace {

/// Whether a device holds less of a value before a relayout than after it. Otherwise, as for
/// partial sums, saving the input instead of the result saves no memory.
bool is_gathered(const DTensor& before, const DTensor& after) {
  const auto shards = [](const Layout& layout) {
    int64_t count = 1;
    for (int64_t axis = 0; axis < layout.rank(); ++axis) count *= layout.num_shards(axis);
    return count;
  };
  return !before.layout().is_partial() && shards(before.layout()) > shards(after.layout());
}

}  // namespace

void TapeRecord::start() {
  if (!recording_) push_tape(this);
  recording_ = true;
}

void TapeRecord::stop_recording() {
  if (recording_) remove_tape(this);
  recording_ = false;
}

void TapeRecord::clear() {
  entries_.clear();
  recipes_.clear();
}

void TapeRecord::ran(const OpInfo& info, const std::shared_ptr<const void>& op,
                     const std::shared_ptr<OpPlan>&, std::span<const DTensor> in,
                     std::span<const DTensor> out) {
  if (info.stops_gradient || !at::isFloatingType(out[0].dtype())) return;
  const auto label = [&out] {
    const bool named = CommLogScope::current() || tracer() || !out[0].mesh().is_local();
    return named ? CommLabel::current() : std::string();
  };
  if (info.rematerialized && info.rematerialized(op.get()) && is_gathered(in[0], out[0])) {
    Recipe& recipe = recipes_[out[0].id()];
    recipe = {&info, op, {in.begin(), in.end()}, {}, label()};
    for (const DTensor& value : in) {
      if (value.tag()) recipe.versions.emplace_back(value.tag(), value.tag()->unexpected());
    }
  }
  uint32_t tracked = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const bool variable = options_.watch_variables && in[i].tag() && in[i].tag()->trainable;
    if (!at::isFloatingType(in[i].dtype())) continue;
    if (variable) variables_.push_back(in[i].tag());
    if (variable || tracked_.count(in[i].id())) tracked |= 1u << i;
  }
  if (tracked == 0) return;
  Entry entry{&info, op, {}, {}, {}, {}, {}, {}, tracked, 0, 0, {}, label()};
  entry.in.resize(in.size());
  entry.out.resize(out.size());
  for (size_t i = 0; i < in.size(); ++i) {
    entry.in_ids.push_back(in[i].id());
    entry.in_shardings.push_back(in[i].sharding());
    if (!(info.saves.in >> i & 1)) continue;
    if (recipes_.contains(in[i].id())) {
      entry.rematerialized |= 1u << i;
      continue;
    }
    entry.in[i] = in[i];
    if (in[i].tag()) entry.versions.emplace_back(in[i].tag(), in[i].tag()->unexpected());
  }
  for (size_t o = 0; o < out.size(); ++o) {
    entry.out_ids.push_back(out[o].id());
    entry.out_shardings.push_back(out[o].sharding());
    if (info.saves.out >> o & 1) entry.out[o] = out[o];
    if (out[o].is_parameter()) entry.out_parameters |= 1u << o;
    tracked_.insert(out[o].id());
  }
  if (planned_tensors()) note_saved(entry, in, out);
  entries_.push_back(std::move(entry));
}

bool TapeRecord::took_result(std::string_view name, std::string_view maker) const {
  std::unordered_map<uint64_t, const Entry*> makers;
  for (const Entry& entry : entries_) {
    for (uint64_t id : entry.out_ids) makers[id] = &entry;
  }
  const auto maker_of = [&](uint64_t id) {
    const auto found = makers.find(id);
    return found == makers.end() ? nullptr : found->second;
  };
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    if (entry.info->name != name) return false;
    const Entry* from = maker_of(entry.in_ids[0]);
    while (from && (from->info->name == "cast" || from->info->name == "reshape" ||
                    from->info->name == "transpose" || from->info->name == "relayout")) {
      from = maker_of(from->in_ids[0]);
    }
    return from && from->info->name == maker;
  });
}

/// Notes the values that an entry keeps alive, each once for all entries. Reshaped and transposed
/// values are views.
void TapeRecord::note_saved(const Entry& entry, std::span<const DTensor> in,
                            std::span<const DTensor> out) {
  const auto memory = [&](uint64_t id) {
    const auto found = memory_of_.find(id);
    return found == memory_of_.end() ? id : found->second;
  };
  const std::string_view name = entry.info->name;
  const bool view = name == "reshape" || name == "transpose" || name == "relayout";
  if (view && out[0].layout().sharded_dims() == in[0].layout().sharded_dims() &&
      out[0].layout().partial_dims() == in[0].layout().partial_dims()) {
    memory_of_[out[0].id()] = memory(in[0].id());
  }
  const auto note = [&](const DTensor& value) {
    if (!value.defined() || value.tag() || !noted_.insert(memory(value.id())).second) return;
    planned_tensors()->saved.push_back({entry.label, value.sharding()});
  };
  for (size_t i = 0; i < entry.in_ids.size(); ++i) {
    if (!(entry.rematerialized >> i & 1)) continue;
    for (const DTensor& value : recipes_.at(entry.in_ids[i]).in) note(value);
  }
  for (const DTensor& value : entry.in) note(value);
  for (const DTensor& value : entry.out) note(value);
}

}  // namespace tessera::detail
