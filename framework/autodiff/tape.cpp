#include <tessera/framework/autodiff/tape.hpp>

#include <algorithm>
#include <utility>

#include <c10/util/ScopeExit.h>

#include <tessera/framework/autodiff/internal/backward.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/wait_policy.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera {

using namespace detail;

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

GradientTape::GradientTape(TapeOptions options) : options_(options) { push_tape(this); }

GradientTape::~GradientTape() { stop_recording(); }

void GradientTape::watch(const DTensor& tensor) { tracked_.insert(tensor.id()); }

void GradientTape::stop_recording() {
  if (recording_) remove_tape(this);
  recording_ = false;
}

void GradientTape::ran(const OpInfo& info, const std::shared_ptr<const void>& op,
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
      if (value.tag()) recipe.versions.emplace_back(value.tag(), value.tag()->version);
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
    if (in[i].tag()) entry.versions.emplace_back(in[i].tag(), in[i].tag()->version);
  }
  for (size_t o = 0; o < out.size(); ++o) {
    entry.out_ids.push_back(out[o].id());
    entry.out_shardings.push_back(out[o].sharding());
    if (info.saves.out >> o & 1) entry.out[o] = out[o];
    if (out[o].is_parameter()) entry.out_parameters |= 1u << o;
    tracked_.insert(out[o].id());
  }
  if (planned_tensors()) note_kept(entry, in, out);
  entries_.push_back(std::move(entry));
}

bool GradientTape::took_result(std::string_view name, std::string_view maker) const {
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
void GradientTape::note_kept(const Entry& entry, std::span<const DTensor> in,
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
    planned_tensors()->kept.push_back({entry.place, value.sharding()});
  };
  for (size_t i = 0; i < entry.in_ids.size(); ++i) {
    if (!(entry.rematerialized >> i & 1)) continue;
    for (const DTensor& value : recipes_.at(entry.in_ids[i]).in) note(value);
  }
  for (const DTensor& value : entry.in) note(value);
  for (const DTensor& value : entry.out) note(value);
}

std::vector<DTensor> GradientTape::gradient(const DTensor& target,
                                            const std::vector<DTensor>& sources,
                                            const GradientOptions& options) {
  if (used_ && !options_.persistent) {
    throw StateError("GradientTape", "gradient() is called once", "a second call",
                     "make the tape with {.persistent = true}");
  }
  used_ = true;
  // May be a step of a user's own training loop.
  adapt_wait_policy();
  // This tape does not record its own backward pass; outer tapes do.
  const bool resume = recording_ && options_.persistent;
  stop_recording();
  const auto after = c10::make_scope_exit([&] {
    if (!options_.persistent) {
      entries_.clear();
      recipes_.clear();
    }
    if (resume) push_tape(this);
    recording_ = resume;
  });
  return TapeWalk(*this, sources, options).run(target);
}

DTensor GradientTape::gradient(const DTensor& target, const DTensor& source,
                               const GradientOptions& options) {
  return gradient(target, std::vector<DTensor>{source}, options)[0];
}

}  // namespace tessera
