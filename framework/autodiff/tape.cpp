#include <tessera/framework/autodiff/tape.hpp>

#include <algorithm>
#include <utility>

#include <c10/util/ScopeExit.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>
#include <tessera/framework/tensor/internal/wait_policy.hpp>

namespace tessera {

using namespace detail;

namespace {

/// As an operation: a tape around this one differentiates through it.
DTensor relayouted(const DTensor& gradient, const Layout& layout) {
  return gradient.layout() == layout ? gradient : ops::relayout(gradient, layout);
}

/// What has come in of one gradient. What is complete and what is pending are added apart: where a
/// residual's gradient meets those of a layer that is cut, their sum would reduce what is pending
/// then and there, and what comes in behind it again.
class Contributions {
 public:
  void add(const Contributions& others) {
    if (others.complete_.defined()) add(others.complete_);
    if (others.pending_.defined()) add(others.pending_);
  }
  void add(const DTensor& gradient) {
    DTensor& sum = gradient.layout().is_pending() ? pending_ : complete_;
    if (!sum.defined()) {
      sum = gradient;
    } else {
      // Of two that are pending otherwise, the sum may be complete.
      add(ops::add(std::exchange(sum, DTensor()), gradient));
    }
  }

  /// All of it, in the layout of the gradient's value; of a parameter as it was left.
  DTensor total(const Layout& layout) const {
    if (!complete_.defined()) return relayouted(pending_, layout);
    if (!pending_.defined()) return relayouted(complete_, layout);
    return ops::add(relayouted(complete_, layout), relayouted(pending_, layout));
  }
  DTensor total_as_left() const {
    if (!complete_.defined()) return pending_;
    return pending_.defined() ? ops::add(complete_, pending_) : complete_;
  }

 private:
  DTensor complete_, pending_;
};

}  // namespace

/// One walk back over the entries.
class GradientTape::Backward {
 public:
  Backward(GradientTape& tape, const std::vector<DTensor>& sources, const GradientOptions& options)
      : tape_(tape), sources_(sources), options_(options), waiting_(sources.size()) {
    for (size_t s = 0; s < sources.size(); ++s) {
      source_of_[sources[s].id()].push_back(s);
      wanted_.insert(sources[s].id());
    }
    for (const Entry& entry : tape.entries_) mark(entry);
  }

  std::vector<DTensor> run(const DTensor& target) {
    const DTensor one = options_.output_gradient.defined()
                            ? options_.output_gradient
                            : filled(target.shape(), 1, target.dtype(), fetch_layout(target));
    gradients_[target.id()].add(one);
    for (size_t s = 0; s < sources_.size(); ++s) {
      if (waiting_[s] == 0) ready(s);
    }
    for (size_t e = tape_.entries_.size(); e-- > 0;) {
      Entry& entry = tape_.entries_[e];
      visit(entry);
      // The last one first, as if it came in with an operation of its own.
      for (size_t i = entry.in_ids.size(); i-- > 0;) release(entry.in_ids[i]);
      if (!tape_.options_.persistent) entry = Entry();
    }
    std::vector<DTensor> results;
    for (const DTensor& source : sources_) results.push_back(result(source));
    return results;
  }

 private:
  /// Finds what depends on a source, and counts the operations that will contribute to it.
  void mark(const Entry& entry) {
    bool depends = false;
    for (size_t i = 0; i < entry.in_ids.size(); ++i) {
      if (!(entry.tracked >> i & 1) || !wanted_.count(entry.in_ids[i])) continue;
      depends = true;
    }
    for (uint64_t id : entry.in_ids) {
      const auto found = source_of_.find(id);
      if (found == source_of_.end()) continue;
      for (size_t s : found->second) ++waiting_[s];
    }
    if (depends) wanted_.insert(entry.out_ids.begin(), entry.out_ids.end());
  }

  void release(uint64_t id) {
    const auto found = source_of_.find(id);
    if (found == source_of_.end()) return;
    for (size_t s : found->second) {
      if (--waiting_[s] == 0) ready(s);
    }
  }

  void ready(size_t s) {
    if (!options_.on_ready) return;
    const auto found = gradients_.find(sources_[s].id());
    if (found == gradients_.end()) return;
    settle(found->second, found->second.total_as_left());
    options_.on_ready(s, found->second.total_as_left());
  }

  void visit(Entry& entry) {
    const CommLabel place(entry.place);
    if (entry.info->only_moves) return hand_on(entry);
    Cotangents dy(entry.out_ids.size());
    bool any = false;
    for (size_t o = 0; o < dy.size(); ++o) {
      const auto found = gradients_.find(entry.out_ids[o]);
      if (found == gradients_.end()) continue;
      any = true;
      const bool parameter = entry.out_parameters >> o & 1;
      dy[o] = parameter ? found->second.total_as_left()
                        : found->second.total(entry.out_forms[o]->layout.resolved());
      if (source_of_.count(entry.out_ids[o])) {
        settle(found->second, dy[o]);
      } else {
        gradients_.erase(found);
      }
    }
    Needs needs;
    for (size_t i = 0; i < entry.in_ids.size(); ++i) {
      const bool wanted = (entry.tracked >> i & 1) && wanted_.count(entry.in_ids[i]);
      if (wanted) needs.mask |= 1u << i;
    }
    if (!any || needs.mask == 0) return;
    check(entry);
    const Saved saved(entry.in, entry.out, entry.in_forms);
    Grads grads = entry.info->gradient(entry.op.get(), saved, dy, needs);
    for (size_t i = 0; i < grads.size(); ++i) {
      if (needs[i] && grads[i].defined()) gradients_[entry.in_ids[i]].add(grads[i]);
    }
  }

  /// What is pending behind a value that was moved goes straight to where the value came from: a
  /// reduce-scatter where the value was gathered, not an all-reduce and a slice.
  void hand_on(const Entry& entry) {
    const auto found = gradients_.find(entry.out_ids[0]);
    if (found == gradients_.end()) return;
    const Contributions contributions = found->second;
    if (!source_of_.count(entry.out_ids[0])) gradients_.erase(found);
    if (!(entry.tracked & 1) || !wanted_.count(entry.in_ids[0])) return;
    if (entry.out_parameters) return gradients_[entry.in_ids[0]].add(contributions);
    gradients_[entry.in_ids[0]].add(
        contributions.total(entry.in_forms[0]->layout.resolved()));
  }

  void check(const Entry& entry) const {
    const std::string where = "GradientTape, " + std::string(entry.info->name);
    if (!entry.info->gradient) {
      throw StateError(where, "the operation has a derivative", "it has none",
                       "keep it out of what is differentiated, or stop_gradient its input");
    }
    for (const auto& [tag, version] : entry.versions) {
      if (tag->version == version) continue;
      throw StateError(where, "a Variable keeps its value from the forward pass to gradient()",
                       "it was assigned in between", "call gradient() first, then assign");
    }
  }

  /// What was added up is not added up again.
  static void settle(Contributions& contributions, const DTensor& total) {
    contributions = Contributions();
    contributions.add(total);
  }

  DTensor result(const DTensor& source) const {
    const auto found = gradients_.find(source.id());
    if (found == gradients_.end()) {
      if (options_.unconnected == Unconnected::none) return DTensor();
      return filled(source.shape(), 0, source.dtype(), fetch_layout(source));
    }
    if (source.is_parameter()) return found->second.total_as_left();
    return found->second.total(fetch_layout(source));
  }

  GradientTape& tape_;
  const std::vector<DTensor>& sources_;
  const GradientOptions& options_;
  std::vector<int64_t> waiting_;
  std::unordered_map<uint64_t, std::vector<size_t>> source_of_;
  std::unordered_set<uint64_t> wanted_;
  std::unordered_map<uint64_t, Contributions> gradients_;
};

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
  uint32_t tracked = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const bool variable = options_.watch_variables && in[i].tag() && in[i].tag()->trainable;
    if (!at::isFloatingType(in[i].dtype())) continue;
    if (variable) variables_.push_back(in[i].tag());
    if (variable || tracked_.count(in[i].id())) tracked |= 1u << i;
  }
  if (tracked == 0) return;
  Entry entry{&info, op, {}, {}, {}, {}, {}, {}, tracked, 0, {}, {}};
  entry.in.resize(in.size());
  entry.out.resize(out.size());
  for (size_t i = 0; i < in.size(); ++i) {
    entry.in_ids.push_back(in[i].id());
    entry.in_forms.push_back(in[i].sharding());
    if (!(info.saves.in >> i & 1)) continue;
    entry.in[i] = in[i];
    if (in[i].tag()) entry.versions.emplace_back(in[i].tag(), in[i].tag()->version);
  }
  for (size_t o = 0; o < out.size(); ++o) {
    entry.out_ids.push_back(out[o].id());
    entry.out_forms.push_back(out[o].sharding());
    if (info.saves.out >> o & 1) entry.out[o] = out[o];
    if (out[o].is_parameter()) entry.out_parameters |= 1u << o;
    tracked_.insert(out[o].id());
  }
  const bool named = CommLogScope::current() || tracer() || !out[0].mesh().is_local();
  if (named) entry.place = CommLabel::current();
  if (abstract_notes()) note_kept(entry, in, out);
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

/// Notes what an entry keeps alive, once for all entries. Reshaped and transposed values are views.
void GradientTape::note_kept(const Entry& entry, std::span<const DTensor> in,
                             std::span<const DTensor> out) {
  const auto memory = [&](uint64_t id) {
    const auto found = memory_of_.find(id);
    return found == memory_of_.end() ? id : found->second;
  };
  const std::string_view name = entry.info->name;
  const bool view = name == "reshape" || name == "transpose" || name == "relayout";
  if (view && out[0].layout().sharded_dims() == in[0].layout().sharded_dims() &&
      out[0].layout().pending_dims() == in[0].layout().pending_dims()) {
    memory_of_[out[0].id()] = memory(in[0].id());
  }
  const auto note = [&](const DTensor& value) {
    if (!value.defined() || value.tag() || !noted_.insert(memory(value.id())).second) return;
    abstract_notes()->kept.push_back({entry.place, value.sharding()});
  };
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
  // A step of a loop of the user's own.
  adapt_wait_policy();
  // The backward pass is not this tape's to record; tapes around it see it.
  const bool resume = recording_ && options_.persistent;
  stop_recording();
  const auto after = c10::make_scope_exit([&] {
    if (!options_.persistent) entries_.clear();
    if (resume) push_tape(this);
    recording_ = resume;
  });
  return Backward(*this, sources, options).run(target);
}

DTensor GradientTape::gradient(const DTensor& target, const DTensor& source,
                               const GradientOptions& options) {
  return gradient(target, std::vector<DTensor>{source}, options)[0];
}

}  // namespace tessera
