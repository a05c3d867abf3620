#include <tessera/framework/training/capture/step_capture.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <c10/util/ScopeExit.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/wait_policy.hpp>
#include <tessera/framework/comm/world_size_invariant.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/fused_conv.hpp>
#include <tessera/framework/optimizer/internal/gradient_reducer.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>

namespace tessera::detail {
namespace {

/// More signatures than a run has. Without a limit, shapes that never repeat would fill memory.
constexpr size_t max_signatures = 16;
constexpr int64_t default_check_every = 10;
/// Copies of weights for predictions: beyond, steps of further signatures stay as captured.
constexpr double max_packed_bytes = 1 << 30;

std::vector<Variable> variables_of(Layer& model) {
  std::vector<Variable> variables;
  for (const auto& [name, variable] : weights_and_states(model)) variables.push_back(variable);
  return variables;
}

std::vector<Variable> states_of(const std::vector<HasStates*>& layers) {
  std::vector<Variable> states;
  for (const HasStates* const layer : layers) {
    for (const LayerState& state : layer->states()) {
      if (state.variable.defined()) states.push_back(state.variable);
    }
  }
  return states;
}

RecordMode read_mode() {
  const char* const text = std::getenv("TESSERA_RECORD_STEPS");
  const std::string_view mode = text ? text : "";
  if (mode.empty()) return {};
  if (mode == "never") return {.never = true};
  if (mode == "always") return {.always = true};
  if (mode == "check") return {.check_every = default_check_every};
  if (mode.starts_with("check:")) {
    int64_t every = 0;
    const auto [end, error] = std::from_chars(mode.data() + 6, mode.data() + mode.size(), every);
    if (error == std::errc() && end == mode.data() + mode.size() && every > 0) {
      return {.check_every = every};
    }
  }
  throw ConfigError("TESSERA_RECORD_STEPS", "the mode must be never, always, check or check:N",
                    "\"" + std::string(mode) + "\"", "unset it for the default");
}

bool allows_passes() {
  const char* const text = std::getenv("TESSERA_STEP_PASSES");
  const std::string_view mode = text ? text : "";
  if (mode.empty() || mode == "never") return mode.empty();
  throw ConfigError("TESSERA_STEP_PASSES", "the mode must be never",
                    "\"" + std::string(mode) + "\"", "unset it for the default");
}

}  // namespace

StepCapture::StepCapture(std::shared_ptr<Arena> buffer)
    : buffer_(std::move(buffer)),
      packed_(make_packed_kernels()),
      passes_(allows_passes()),
      mode_(read_mode()) {}

StepCapture::Signature StepCapture::signature_of(const Batch& batch, bool custom_step) {
  Signature signature;
  signature.custom_step = custom_step;
  std::vector<const DTensor*> values;
  for (const auto* list : {&batch.x, &batch.y, &batch.sample_weight}) {
    signature.counts.push_back(list->size());
    for (const DTensor& value : *list) {
      signature.tensors.push_back(value.defined() ? value.sharding() : nullptr);
      values.push_back(&value);
      const auto same = [&](const DTensor* other) { return other->is(value); };
      const auto first = std::find_if(values.begin(), values.end(), same);
      signature.first.push_back(static_cast<size_t>(first - values.begin()));
    }
  }
  signature.rows = batch.rows;
  signature.seed = global_seed();
  signature.threads = worker_count();
  signature.policy = block_policy();
  return signature;
}

bool StepCapture::has_room_for_passes() const {
  double bytes = 0;
  for (const auto& entry : entries_) {
    if (entry->captured) bytes += entry->captured->packed_bytes();
  }
  return bytes < max_packed_bytes;
}

StepCapture::Entry* StepCapture::find(const Signature& signature) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const auto& entry) { return entry->signature == signature; });
  if (found == entries_.end()) return nullptr;
  std::rotate(found, found + 1, entries_.end());
  return entries_.back().get();
}

/// Returns what a capture for the entry is rewritten with; null if it is not.
std::shared_ptr<PackedKernels> StepCapture::kernels_for(const Entry& entry) const {
  return entry.passes ? packed_ : nullptr;
}

void StepCapture::add_layers(const Layer& layer, std::vector<LayerFacts>& all) {
  for (const auto& inner : layer.sublayers()) {
    all.emplace_back(inner);
    add_layers(*inner, all);
  }
}

bool StepCapture::same_layers(const Layer& model) const {
  return model.sublayers().size() == top_layers_ &&
         std::all_of(layers_.begin(), layers_.end(),
                     [](const LayerFacts& facts) { return facts.hold(); });
}

/// A state of another batch size is another Variable, which captured steps do not know.
bool StepCapture::same_states() const {
  const std::vector<Variable> now = states_of(layers_with_states_);
  return std::equal(now.begin(), now.end(), states_.begin(), states_.end(),
                    [](const Variable& a, const Variable& b) { return a.is(b); });
}

void StepCapture::forget() {
  entries_.clear();
  layers_.clear();
  layers_with_states_.clear();
  states_.clear();
}

void StepCapture::release_weights() {
  for (const auto& entry : entries_) {
    if (entry->captured) entry->captured->release_weights();
  }
  clear(*packed_);
}

void StepCaptures::release_weights() {
  for (StepCapture& captures : captures_) captures.release_weights();
}

auto StepCapture::run_eager(const std::function<Results()>& eager, const std::string& why)
    -> Results {
  ++records_.eager;
  records_.why = why;
  return eager();
}

auto StepCapture::run(Layer& model, const Batch& batch, const CompileOptions& options, int64_t step,
                      bool custom_step, const std::function<Results()>& eager) -> Results {
  adapt_wait_policy();
  // A replay that throws does not reset the reducer itself.
  const auto reset = c10::make_scope_exit([&] {
    if (options.optimizer) options.optimizer->reducer().reset();
  });
  if (busy_) return eager();
  const bool off = options.run_eagerly || options.record_steps == false;
  if (off || mode_.never) {
    return run_eager(eager, "run_eagerly, record_steps or TESSERA_RECORD_STEPS disables it");
  }
  if (recording() || tracer() || is_abstract()) {
    return run_eager(eager, "a GradientTape, a capture or plan() is active");
  }
  busy_ = true;
  const auto cleanup = c10::make_scope_exit([this] { busy_ = false; });
  if (!layers_.empty() && !(same_layers(model) && same_states())) forget();
  Signature signature = signature_of(batch, custom_step);
  Entry* const entry = find(signature);
  if (!entry) {
    if (entries_.size() == max_signatures) entries_.erase(entries_.begin());
    entries_.push_back(std::make_unique<Entry>(Entry{std::move(signature)}));
    return run_eager(eager, "it was the first step of its signature");
  }
  if (!entry->why.empty()) return run_eager(eager, entry->why);
  const bool any_code = options.record_steps == true || mode_.always;
  if (!entry->captured) return capture(model, batch, step, *entry, any_code, eager);
  if (entry->captured->fits()) {
    const bool checks = mode_.check_every > 0 && ++entry->replays % mode_.check_every == 0;
    return checks ? check(model, batch, step, *entry, any_code, eager)
                  : replay(batch, step, *entry, eager);
  }
  forget();
  return run_eager(eager, "trainable weights or layouts have changed");
}

auto StepCapture::check(Layer& model, const Batch& batch, int64_t step, const Entry& entry,
                        bool any_code, const std::function<Results()>& eager) -> Results {
  StepCapturer capturer(batch, variables_of(model), step, any_code, kernels_for(entry), buffer_);
  Results results;
  {
    const TracerScope listening(&capturer);
    results = run_eager(eager, "it was compared with the code");
  }
  ++records_.checked;
  const std::unique_ptr<CapturedStep> now = capturer.finish(results);
  const std::string difference = now ? entry.captured->difference(*now, step) : capturer.why();
  if (difference.empty()) return results;
  throw StateError("TESSERA_RECORD_STEPS=check", "a recorded step does what the code does",
                   difference,
                   "keep what changes in a Variable, or compile with record_steps = false");
}

auto StepCapture::capture(Layer& model, const Batch& batch, int64_t step, Entry& entry,
                          bool any_code, const std::function<Results()>& eager) -> Results {
  // What this process holds must not decide which kernels run.
  entry.passes = passes_ && (world_size_invariant() || has_room_for_passes());
  StepCapturer capturer(batch, variables_of(model), step, any_code, kernels_for(entry), buffer_);
  Results results;
  {
    const TracerScope listening(&capturer);
    results = run_eager(eager, "");
  }
  entry.captured = capturer.finish(results);
  if (!entry.captured) {
    entry.why = records_.why = capturer.why();
    return results;
  }
  for (const auto& other : entries_) {
    const bool captured = other.get() != &entry && other->captured;
    if (captured && entry.captured->share_weights(*other->captured)) break;
  }
  ++records_.recorded;
  layers_.clear();
  add_layers(model, layers_);
  top_layers_ = model.sublayers().size();
  layers_with_states_.clear();
  for (const auto& [path, layer] : layers_with_states(model)) layers_with_states_.push_back(layer);
  states_ = states_of(layers_with_states_);
  return results;
}

auto StepCapture::replay(const Batch& batch, int64_t step, Entry& entry,
                         const std::function<Results()>& eager) -> Results {
  CapturedStep& captured = *entry.captured;
  try {
    Results results = captured.run(batch, step);
    ++records_.replayed;
    records_.why.clear();
    records_.instructions = static_cast<int64_t>(captured.instructions());
    records_.hoisted = static_cast<int64_t>(captured.hoisted());
    records_.fused = static_cast<int64_t>(captured.fused());
    records_.memory = captured.memory();
    return results;
  } catch (const std::exception&) {
    // An eager run names the layer in its error, but must not repeat collectives between processes.
    const bool alone = batch.x.empty() || batch.x[0].mesh().is_local();
    if (captured.performed_action() || !alone) throw;
  }
  return run_eager(eager, "its replay failed");
}

}  // namespace tessera::detail
