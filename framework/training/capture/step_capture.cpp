#include <tessera/framework/training/capture/step_capture.hpp>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <c10/util/ScopeExit.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/wait_policy.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/optimizer/internal/gradient_reducer.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>

namespace tessera::detail {
namespace {

/// More forms of batch than a run has; a program whose shapes never repeat must not fill memory.
constexpr size_t max_forms = 16;

void add_layers(const Layer& layer, std::vector<std::pair<std::shared_ptr<Layer>, bool>>& all) {
  for (const auto& inner : layer.sublayers()) {
    all.emplace_back(inner, inner->trainable());
    add_layers(*inner, all);
  }
}

/// $TESSERA_RECORD_STEPS: "never", "always" for code of any kind, else as compile() says.
std::string in_environment() {
  const char* const text = std::getenv("TESSERA_RECORD_STEPS");
  return text ? text : "";
}

}  // namespace

StepCapture::Form StepCapture::form_of(const Batch& batch, bool whole) {
  Form form;
  form.whole = whole;
  std::vector<const DTensor*> values;
  for (const auto* list : {&batch.x, &batch.y, &batch.sample_weight}) {
    form.counts.push_back(list->size());
    for (const DTensor& value : *list) {
      form.tensors.push_back(value.defined() ? value.sharding() : nullptr);
      values.push_back(&value);
      const auto same = [&](const DTensor* other) { return other->is(value); };
      const auto first = std::find_if(values.begin(), values.end(), same);
      form.first.push_back(static_cast<size_t>(first - values.begin()));
    }
  }
  form.rows = batch.rows;
  form.seed = global_seed();
  form.threads = worker_count();
  form.policy = block_policy();
  return form;
}

StepCapture::Entry* StepCapture::find(const Form& form) {
  for (const auto& entry : entries_) {
    if (entry->form == form) return entry.get();
  }
  return nullptr;
}

bool StepCapture::same_layers(const Layer& model) const {
  return model.sublayers().size() == top_layers_ &&
         std::all_of(layers_.begin(), layers_.end(),
                     [](const auto& layer) { return layer.first->trainable() == layer.second; });
}

void StepCapture::forget() {
  entries_.clear();
  layers_.clear();
}

auto StepCapture::eagerly(const std::function<Results()>& eager, const std::string& why)
    -> Results {
  ++records_.eager;
  records_.why = why;
  return eager();
}

auto StepCapture::run(Layer& model, const Batch& batch, const CompileOptions& options, bool whole,
                      const std::function<Results()>& eager) -> Results {
  adapt_wait_policy();
  // Where a replay ends in an error.
  const auto reset = c10::make_scope_exit([&] {
    if (options.optimizer) options.optimizer->reducer().reset();
  });
  if (busy_) return eager();
  static const std::string wish = in_environment();
  const bool off = options.run_eagerly || options.record_steps == false;
  if (off || wish == "never") return eagerly(eager, "steps are to run eagerly");
  if (recording() || tracer() || is_abstract()) return eagerly(eager, "a tape looks on");
  busy_ = true;
  const auto over = c10::make_scope_exit([this] { busy_ = false; });
  if (!layers_.empty() && !same_layers(model)) forget();
  Form form = form_of(batch, whole);
  Entry* const entry = find(form);
  if (!entry) {
    if (entries_.size() == max_forms) entries_.erase(entries_.begin());
    entries_.push_back(std::make_unique<Entry>(Entry{std::move(form)}));
    return eagerly(eager, "it was the first of its form");
  }
  if (!entry->why.empty()) return eagerly(eager, entry->why);
  const int64_t step = options.optimizer ? options.optimizer->steps() : 0;
  if (!entry->program) {
    const bool any_code = options.record_steps == true || wish == "always";
    return record(model, batch, step, *entry, any_code, eager);
  }
  if (entry->program->fits()) return replay(batch, step, *entry, eager);
  forget();
  return eagerly(eager, "what is trained, or where it lies, has changed");
}

auto StepCapture::record(Layer& model, const Batch& batch, int64_t step, Entry& entry,
                         bool any_code, const std::function<Results()>& eager) -> Results {
  StepCapturer recorder(batch, model.weights(), step, any_code, buffer_);
  Results results;
  {
    const TracerScope heard(&recorder);
    results = eagerly(eager, "");
  }
  entry.program = recorder.finish(results);
  if (!entry.program) {
    entry.why = records_.why = recorder.why();
    return results;
  }
  ++records_.recorded;
  layers_.clear();
  add_layers(model, layers_);
  top_layers_ = model.sublayers().size();
  return results;
}

auto StepCapture::replay(const Batch& batch, int64_t step, Entry& entry,
                         const std::function<Results()>& eager) -> Results {
  CapturedStep& program = *entry.program;
  try {
    Results results = program.run(batch, step);
    ++records_.replayed;
    records_.why.clear();
    records_.instructions = static_cast<int64_t>(program.instructions());
    records_.memory = program.memory();
    return results;
  } catch (const std::exception&) {
    // The step's own code names the layer. What other processes take part in happens once.
    const bool alone = batch.x.empty() || batch.x[0].mesh().is_local();
    if (program.acted() || !alone) throw;
  }
  return eagerly(eager, "its replay failed");
}

}  // namespace tessera::detail
