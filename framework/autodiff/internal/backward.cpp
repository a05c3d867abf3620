#include <tessera/framework/autodiff/internal/backward.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/internal/row_gradients.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera::detail {

namespace {

/// Replaces the contributions by their total, so that they are not added a second time.
void replace_by_total(Contributions& contributions, const DTensor& total) {
  contributions = Contributions();
  contributions.add(total);
}

/// Tells the tracer whose gradient is computed from here on.
void note_gradient_of(uint64_t value) {
  if (OpListener* const listener = tracer()) listener->gradient_of(value);
}

}  // namespace

TapeWalk::TapeWalk(TapeRecord& record, const std::vector<DTensor>& sources,
                   const GradientOptions& options)
    : record_(record), sources_(sources), options_(options), waiting_(sources.size()) {
  for (size_t s = 0; s < sources.size(); ++s) {
    source_of_[sources[s].id()].push_back(s);
    dependent_.insert(sources[s].id());
  }
  for (const Entry& entry : record.entries()) mark(entry);
  count_recipes();
  if (planned_tensors()) record.note_saved();
}

std::vector<DTensor> TapeWalk::run(const DTensor& target) {
  const DTensor one = options_.output_gradient.defined()
                          ? options_.output_gradient
                          : filled(target.shape(), 1, target.dtype(), fetch_layout(target));
  note_gradient_of(target.id());
  gradients_[target.id()].add(one);
  for (size_t s = 0; s < sources_.size(); ++s) {
    if (waiting_[s] == 0) ready(s);
  }
  for (size_t e = record_.entries().size(); e-- > 0;) {
    Entry& entry = record_.entries()[e];
    visit(entry);
    release_saved(entry);
    // The last input first, as if each had been read by an operation of its own.
    for (size_t i = entry.in_ids.size(); i-- > 0;) finish_contribution(entry.in_ids[i]);
    if (!record_.options().persistent) entry = Entry();
  }
  std::vector<DTensor> results;
  for (const DTensor& source : sources_) {
    note_gradient_of(source.id());
    results.push_back(result(source));
  }
  note_gradient_of(0);
  return results;
}

void TapeWalk::mark(const Entry& entry) {
  for (size_t i = 0; i < entry.in_ids.size(); ++i) {
    if (entry.rematerialized >> i & 1) ++rematerialized_[entry.in_ids[i]].readers;
  }
  for (size_t o = 0; o < entry.out_ids.size(); ++o) {
    if (entry.rematerialized_out >> o & 1) ++rematerialized_[entry.out_ids[o]].readers;
  }
  bool depends = false;
  for (size_t i = 0; i < entry.in_ids.size(); ++i) {
    if (!(entry.tracked >> i & 1) || !dependent_.count(entry.in_ids[i])) continue;
    depends = true;
  }
  for (uint64_t id : entry.in_ids) {
    const auto it = source_of_.find(id);
    if (it == source_of_.end()) continue;
    for (size_t s : it->second) ++waiting_[s];
  }
  if (depends) dependent_.insert(entry.out_ids.begin(), entry.out_ids.end());
}

bool TapeWalk::is_needed(const RecipePtr& recipe) const {
  return std::any_of(recipe->out_ids.begin(), recipe->out_ids.end(), [&](uint64_t id) {
    return rematerialized_.contains(id) && record_.recipe_of(id) == recipe;
  });
}

void TapeWalk::count_recipes() {
  const std::vector<RecipePtr>& recipes = record_.recipes();
  for (size_t r = recipes.size(); r-- > 0;) {
    Recipe& recipe = *recipes[r];
    if (!is_needed(recipes[r])) {
      done_.insert(&recipe);
      if (!record_.options().persistent) recipe.in.clear();
      continue;
    }
    for (size_t i = 0; i < recipe.in.size(); ++i) {
      if (!recipe.in[i].defined()) ++rematerialized_[recipe.in_ids[i]].readers;
    }
  }
}

void TapeWalk::finish_contribution(uint64_t id) {
  const auto it = source_of_.find(id);
  if (it == source_of_.end()) return;
  for (size_t s : it->second) {
    if (--waiting_[s] == 0) ready(s);
  }
}

void TapeWalk::ready(size_t s) {
  if (!options_.on_ready) return;
  const auto it = gradients_.find(sources_[s].id());
  if (it == gradients_.end()) return;
  note_gradient_of(sources_[s].id());
  replace_by_total(it->second, it->second.unresolved_total());
  options_.on_ready(s, it->second.unresolved_total());
}

void TapeWalk::visit(Entry& entry) {
  const CommLabel label(entry.label);
  if (entry.info->only_moves || keeps_narrow(entry)) return forward_gradient(entry);
  Cotangents dy(entry.out_ids.size());
  bool any = false;
  for (size_t o = 0; o < dy.size(); ++o) {
    const auto it = gradients_.find(entry.out_ids[o]);
    if (it == gradients_.end()) continue;
    any = true;
    note_gradient_of(entry.out_ids[o]);
    const bool parameter = entry.out_parameters >> o & 1;
    dy[o] = parameter ? it->second.unresolved_total()
                      : it->second.total(entry.out_shardings[o]->layout.resolved());
    if (source_of_.count(entry.out_ids[o])) {
      replace_by_total(it->second, dy[o]);
    } else {
      gradients_.erase(it);
    }
  }
  Needs needs;
  for (size_t i = 0; i < entry.in_ids.size(); ++i) {
    const bool needed = (entry.tracked >> i & 1) && dependent_.count(entry.in_ids[i]);
    if (needed) needs.mask |= 1u << i;
  }
  if (!any || needs.mask == 0) return;
  check(entry);
  const auto make = [&](size_t i) { rematerialize(entry, i); };
  const Saved saved(entry.in, entry.out, entry.in_shardings, make);
  const ScopedValue<bool> rows(row_sparse_gradients(),
                               options_.row_sparse && source_of_.count(entry.in_ids[0]) > 0);
  Grads grads = entry.info->gradient(entry.op.get(), saved, dy, needs);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!needs[i] || !grads[i].defined()) continue;
    note_gradient_of(entry.in_ids[i]);
    gradients_[entry.in_ids[i]].add(grads[i]);
  }
}

bool TapeWalk::keeps_narrow(const Entry& entry) const {
  return options_.narrow && entry.info->only_casts && source_of_.contains(entry.in_ids[0]) &&
         at::isReducedFloatingType(entry.out_shardings[0]->dtype);
}

void TapeWalk::forward_gradient(const Entry& entry) {
  for (size_t o = 0; o < entry.out_ids.size(); ++o) {
    const auto it = gradients_.find(entry.out_ids[o]);
    if (it == gradients_.end()) continue;
    const Contributions contributions = it->second;
    if (!source_of_.count(entry.out_ids[o])) gradients_.erase(it);
    const uint64_t input = entry.in_ids[o];
    if (!(entry.tracked >> o & 1) || !dependent_.count(input)) continue;
    note_gradient_of(input);
    if (entry.out_parameters >> o & 1) {
      gradients_[input].add(contributions);
    } else {
      gradients_[input].add(contributions.total(entry.in_shardings[o]->layout.resolved()));
    }
  }
}

void TapeWalk::check(const Entry& entry) {
  if (!entry.info->gradient) {
    throw StateError("GradientTape, " + std::string(entry.info->name),
                     "the operation has a derivative", "it has none",
                     "keep it out of what is differentiated, or stop_gradient its input");
  }
  check_versions(*entry.info, entry.versions);
}

void TapeWalk::check_versions(const OpInfo& info, const Versions& versions) {
  const std::string where = "GradientTape, " + std::string(info.name);
  for (const auto& [tag, version] : versions) {
    // The tape holds the value that was read. A layer may assign a state that it has read.
    if (tag->unexpected() == version || !tag->trainable) continue;
    throw StateError(where,
                     "a trainable Variable keeps its value from the forward pass to gradient()",
                     (tag->path.empty() ? "it" : tag->path) + " was assigned in between",
                     "call gradient() first, then assign");
  }
}

void TapeWalk::rematerialize(Entry& entry, size_t i) {
  if (i < entry.in.size()) {
    if (entry.rematerialized >> i & 1) entry.in[i] = rematerialized(entry.in_ids[i]);
    return;
  }
  const size_t o = i - entry.in.size();
  if (entry.rematerialized_out >> o & 1) entry.out[o] = rematerialized(entry.out_ids[o]);
}

DTensor TapeWalk::rematerialized(uint64_t id) {
  Rematerialized& wanted = rematerialized_.at(id);
  if (wanted.value.defined()) return wanted.value;
  wanted.value = record_.saved_later(id);
  if (wanted.value.defined()) return wanted.value;
  const RecipePtr recipe = record_.recipe_of(id);
  std::vector<DTensor> in = recipe->in;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i].defined()) in[i] = rematerialized(recipe->in_ids[i]);
  }
  check_versions(*recipe->info, recipe->versions);
  std::vector<DTensor> out;
  {
    const CommLabel label(recipe->label);
    out = dispatch(*recipe->info, recipe->op.get(), 0, in);
  }
  done_.insert(recipe.get());
  for (size_t o = 0; o < out.size(); ++o) {
    const auto found = rematerialized_.find(recipe->out_ids[o]);
    const bool read = found != rematerialized_.end() && !found->second.value.defined();
    if (read && record_.recipe_of(recipe->out_ids[o]) == recipe) found->second.value = out[o];
  }
  in.clear();
  for (size_t i = 0; i < recipe->in.size(); ++i) {
    if (!recipe->in[i].defined()) release(recipe->in_ids[i]);
  }
  if (!record_.options().persistent) recipe->in.clear();
  return wanted.value;
}

void TapeWalk::release(uint64_t id) {
  const auto it = rematerialized_.find(id);
  if (--it->second.readers > 0) return;
  rematerialized_.erase(it);
  const bool persistent = record_.options().persistent;
  if (!persistent) record_.release_saved_later(id);
  const RecipePtr recipe = record_.recipe_of(id);
  if (!recipe || done_.contains(recipe.get())) return;
  // Nothing has read it. Its recipe runs only for another of its results.
  if (is_needed(recipe)) return;
  done_.insert(recipe.get());
  for (size_t i = 0; i < recipe->in.size(); ++i) {
    if (!recipe->in[i].defined()) release(recipe->in_ids[i]);
  }
  if (!persistent) recipe->in.clear();
}

void TapeWalk::release_saved(Entry& entry) {
  for (size_t i = 0; i < entry.in_ids.size(); ++i) {
    if (!(entry.rematerialized >> i & 1)) continue;
    entry.in[i] = DTensor();
    release(entry.in_ids[i]);
  }
  for (size_t o = 0; o < entry.out_ids.size(); ++o) {
    if (!(entry.rematerialized_out >> o & 1)) continue;
    entry.out[o] = DTensor();
    release(entry.out_ids[o]);
  }
}

DTensor TapeWalk::result(const DTensor& source) const {
  const auto it = gradients_.find(source.id());
  if (it == gradients_.end()) {
    if (options_.unconnected == Unconnected::none) return DTensor();
    return filled(source.shape(), 0, source.dtype(), fetch_layout(source));
  }
  if (source.is_parameter()) return it->second.unresolved_total();
  return it->second.total(fetch_layout(source));
}

}  // namespace tessera::detail
