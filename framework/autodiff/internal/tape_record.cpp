#include <tessera/framework/autodiff/internal/tape_record.hpp>

#include <algorithm>

#include <tessera/framework/autodiff/internal/remat_region.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/ops/engine/moves.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera::detail {

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
  recipe_of_.clear();
  saved_later_.clear();
}

TapeRecord::RecipePtr TapeRecord::recipe_of(uint64_t id) const {
  const auto found = recipe_of_.find(id);
  return found == recipe_of_.end() ? nullptr : found->second;
}

DTensor TapeRecord::saved_later(uint64_t id) const {
  const auto found = saved_later_.find(id);
  return found == saved_later_.end() ? DTensor() : found->second;
}

void TapeRecord::save_later(const OpInfo& info, bool rematerialized, std::span<const DTensor> in) {
  const RematRegion* const region = remat_region();
  for (size_t i = 0; i < in.size(); ++i) {
    const RecipePtr recipe = recipe_of(in[i].id());
    if (!recipe) continue;
    const bool read_later = rematerialized || info.saves.in >> i & 1;
    const bool left = recipe->region != 0 && (!region || region->id != recipe->region);
    // An operation that reads a partial sum resolves it in all its handles.
    const size_t o =
        static_cast<size_t>(std::find(recipe->out_ids.begin(), recipe->out_ids.end(), in[i].id()) -
                            recipe->out_ids.begin());
    const bool resolved = recipe->pending >> o & 1 && !in[i].layout().is_partial();
    if (!read_later || !(left || resolved)) continue;
    recipe_of_.erase(in[i].id());
    saved_later_.emplace(in[i].id(), in[i]);
  }
}

TapeRecord::RecipePtr TapeRecord::make_recipe(const OpInfo& info,
                                              const std::shared_ptr<const void>& op,
                                              const RematRegion* region,
                                              std::span<const DTensor> in,
                                              std::span<const DTensor> out) {
  auto recipe = std::make_shared<Recipe>();
  recipe->info = &info;
  recipe->op = op;
  recipe->region = region ? region->id : 0;
  const bool collectives = region && region->saved.collectives();
  for (const DTensor& value : in) {
    recipe->in_ids.push_back(value.id());
    recipe->in.push_back(recipe_of(value.id()) ? DTensor() : value);
    if (value.tag()) recipe->versions.emplace_back(value.tag(), value.tag()->unexpected());
  }
  for (size_t o = 0; o < out.size(); ++o) {
    recipe->out_ids.push_back(out[o].id());
    // With collectives, a partial sum is resolved again.
    if (out[o].layout().is_partial() && !collectives) recipe->pending |= 1u << o;
  }
  return recipe;
}

void TapeRecord::ran(const OpInfo& info, const std::shared_ptr<const void>& op,
                     const std::shared_ptr<OpPlan>&, std::span<const DTensor> in,
                     std::span<const DTensor> out) {
  if (info.stops_gradient || !at::isFloatingType(out[0].dtype())) return;
  const auto label = [&out] {
    const bool named = CommLogScope::current() || tracer() || !out[0].mesh().is_local();
    return named ? CommLabel::current() : std::string();
  };
  const RematRegion* const region = remat_region();
  const auto is_gathered = [&] {
    for (size_t o = 0; o < out.size(); ++o) {
      if (gathers(in[input_of_result(info, o)].layout(), out[o].layout())) return true;
    }
    return false;
  };
  const bool gathered = info.rematerialized && info.rematerialized(op.get()) && is_gathered();
  const bool rematerialized =
      gathered || (region && !region->saved.contains(info, thread_state().communicated));
  if (!recipe_of_.empty()) save_later(info, rematerialized, in);
  if (planned_tensors()) note_view(info, in, out);
  if (rematerialized) {
    const RecipePtr recipe = make_recipe(info, op, gathered ? nullptr : region, in, out);
    recipe->label = label();
    recipes_.push_back(recipe);
    // A no-op may return its input.
    for (const DTensor& value : out) recipe_of_.emplace(value.id(), recipe);
  }
  uint32_t tracked = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const bool variable = options_.watch_variables && in[i].tag() && in[i].tag()->trainable;
    if (!at::isFloatingType(in[i].dtype())) continue;
    if (variable) variables_.push_back(in[i].tag());
    if (variable || tracked_.count(in[i].id())) tracked |= 1u << i;
  }
  if (tracked == 0) return;
  Entry entry{&info, op, {}, {}, {}, {}, {}, {}, tracked, 0, 0, 0, {}, label()};
  entry.in.resize(in.size());
  entry.out.resize(out.size());
  for (size_t i = 0; i < in.size(); ++i) {
    entry.in_ids.push_back(in[i].id());
    entry.in_shardings.push_back(in[i].sharding());
    if (!(info.saves.in >> i & 1)) continue;
    if (recipe_of_.contains(in[i].id())) {
      entry.rematerialized |= 1u << i;
      continue;
    }
    entry.in[i] = in[i];
    if (in[i].tag()) entry.versions.emplace_back(in[i].tag(), in[i].tag()->unexpected());
  }
  for (size_t o = 0; o < out.size(); ++o) {
    entry.out_ids.push_back(out[o].id());
    entry.out_shardings.push_back(out[o].sharding());
    if (info.saves.out >> o & 1) {
      if (recipe_of_.contains(out[o].id())) {
        entry.rematerialized_out |= 1u << o;
      } else {
        entry.out[o] = out[o];
      }
    }
    if (out[o].is_parameter()) entry.out_parameters |= 1u << o;
    tracked_.insert(out[o].id());
  }
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
  const auto moved_input = [](const Entry& entry, uint64_t result) {
    const auto found = std::find(entry.out_ids.begin(), entry.out_ids.end(), result);
    return entry.in_ids[input_of_result(*entry.info, size_t(found - entry.out_ids.begin()))];
  };
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    if (entry.info->name != name) return false;
    uint64_t value = entry.in_ids[0];
    const Entry* from = maker_of(value);
    while (from && (from->info->name == "cast" || from->info->name == "reshape" ||
                    from->info->name == "transpose" || from->info->name == "relayout")) {
      value = moved_input(*from, value);
      from = maker_of(value);
    }
    return from && from->info->name == maker;
  });
}

void TapeRecord::note_view(const OpInfo& info, std::span<const DTensor> in,
                           std::span<const DTensor> out) {
  for (size_t o = 0; o < out.size(); ++o) {
    const DTensor& from = in[input_of_result(info, o)];
    const bool gathered = gathered_.contains(from.id()) || gathers(from.layout(), out[o].layout());
    if (out[o].is_parameter() && gathered) gathered_.insert(out[o].id());
    if (!shares_memory(info, from.layout(), out[o].layout())) continue;
    if (from.tag()) variable_memory_.insert(from.id());
    const auto found = memory_of_.find(from.id());
    memory_of_[out[o].id()] = found == memory_of_.end() ? from.id() : found->second;
  }
}

void TapeRecord::note_saved() {
  std::unordered_set<uint64_t> noted;
  const auto note = [&](const std::string& label, const DTensor& value) {
    if (!value.defined() || value.tag()) return;
    const auto found = memory_of_.find(value.id());
    const uint64_t memory = found == memory_of_.end() ? value.id() : found->second;
    if (variable_memory_.contains(memory) || !noted.insert(memory).second) return;
    const PlannedTensor tensor{label, value.sharding()};
    if (value.is_parameter()) {
      planned_tensors()->copies.push_back({tensor, gathered_.contains(value.id())});
    } else {
      planned_tensors()->saved.push_back(tensor);
    }
  };
  for (const Entry& entry : entries_) {
    for (const DTensor& value : entry.in) note(entry.label, value);
    for (const DTensor& value : entry.out) note(entry.label, value);
  }
  for (const RecipePtr& recipe : recipes_) {
    for (const DTensor& value : recipe->in) note(recipe->label, value);
    for (uint64_t id : recipe->out_ids) note(recipe->label, saved_later(id));
  }
}

}  // namespace tessera::detail
