#include <functional>
#include <iostream>
#include <span>
#include <string_view>
#include <utility>

#include <tessera/framework/base/checksum.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/nn/optimizer/gradient_reducer.hpp>
#include <tessera/framework/training/training_state.hpp>

namespace tessera {
namespace {

std::string_view name_of(Phase phase) {
  if (phase == Phase::train) return "train";
  return phase == Phase::test ? "test" : "predict";
}

}  // namespace

std::string form_of(const Examples& batch) {
  std::string text = str(batch.rows(), " rows of");
  const auto add = [&](const char* name, const std::vector<int64_t>& shape, at::ScalarType dtype) {
    const Shape row(shape.begin() + (shape.empty() ? 0 : 1), shape.end());
    text += str(text.ends_with("of") ? " " : ", ", name, " ", to_string(row), " ",
                c10::toString(dtype));
  };
  for (const auto& x : batch.placed_x) add("x", x.shape(), x.dtype());
  for (const auto& x : batch.x) add("x", x.sizes().vec(), x.scalar_type());
  for (const auto& y : batch.y) add("y", y.sizes().vec(), y.scalar_type());
  for (const auto& weight : batch.sample_weight) {
    add("sample_weight", weight.sizes().vec(), weight.scalar_type());
  }
  return text;
}

uint64_t hash_of(const std::string& text) {
  return std::stoull(xxh128(std::as_bytes(std::span(text))).substr(0, 16), nullptr, 16);
}

void Model::Training::run(const std::string& caller, Phase phase, BatchLoader& loader,
                          const CallbackList& callbacks,
                          const std::function<void(Examples&&, int64_t)>& step) {
  int64_t number = loader.first_step();
  std::optional<Examples> examples = next_batch(caller, phase, loader, number, [] {});
  for (; examples; ++number) {
    const ProfileSpan span(SpanKind::step, name_of(phase));
    callbacks.batch_begin(phase, number);
    step(std::move(*examples), number);
    const bool all = callbacks.wants_batch_logs(phase, number);
    const Logs values = all ? logs() : Logs{{"loss", loss.value()}};
    if (phase == Phase::train && callbacks.hears_train_batches()) {
      check_gradients(caller, number + 1);
    }
    examples = next_batch(caller, phase, loader, number + 1,
                          [&] { callbacks.batch_end(phase, number, values); });
    if (phase == Phase::train && stop) return;
  }
}

std::optional<Examples> Model::Training::next_batch(const std::string& caller, Phase phase,
                                                    BatchLoader& loader, int64_t step,
                                                    const std::function<void()>& before) {
  std::optional<Examples> examples;
  std::string form = "no more";
  const StepStatus word = exchange([&](StepStatus& own) {
    before();
    examples = loader.next();
    if (examples) form = form_of(*examples);
    own.set_next_batch(examples ? examples->rows() : 0, hash_of(form));
    if (const int signal = stop_signal()) own.raise(StatusLevel::save, str(signal));
    if (phase == Phase::train) raise_non_finite(own);
  });
  check_word(caller, phase, word, step);
  if (!all_have_more(caller, word, form, step)) examples.reset();
  return examples;
}

/// Raises the step's gradients that are not finite, if they must be.
void Model::Training::raise_non_finite(StepStatus& own) const {
  if (!gradients_must_be_finite) return;
  const std::string variable = take_non_finite_gradient();
  if (!variable.empty()) own.raise(StatusLevel::non_finite, variable);
}

/// The same on every process before a callback may save weights that such gradients have spoilt.
/// Collective.
void Model::Training::check_gradients(const std::string& caller, int64_t step) {
  // On a mesh that one process holds nobody looks at them.
  if (layouts.mesh().is_local() || !gradients_must_be_finite) return;
  const StepStatus word = exchange([&](StepStatus& own) { raise_non_finite(own); });
  check_word(caller, Phase::train, word, step);
}

std::string place_of(Phase phase, int64_t epoch, int64_t step) {
  return str(phase == Phase::train ? str(" at epoch ", epoch + 1, ", ") : " at ", "step ", step);
}

Interrupted interrupted(int signal, const std::string& caller, Phase phase,
                        const std::string& at) {
  return Interrupted(signal, caller, signal_name(signal) + at,
                     phase == Phase::train
                         ? "start it again; from a checkpoint (--resume, BackupAndRestore) "
                           "it goes on there"
                         : "start it again");
}

/// Throws what the word of a step asks for, on every process the same.
void Model::Training::check_word(const std::string& caller, Phase phase, const StepStatus& word,
                                 int64_t step) const {
  const std::string on = layouts.mesh().is_local() ? "" : str(" on rank ", word.rank());
  const std::string at = place_of(phase, position.epoch, step);
  if (word.status() == StatusLevel::non_finite) {
    throw StateError(caller, "gradients stay finite",
                     str("infinite numbers or NaN in that of ", word.reason(), on, at),
                     "lower the learning rate, or look for bad values in the data");
  }
  if (word.status() == StatusLevel::save) {
    throw interrupted(std::stoi(word.reason()), caller, phase, on + at);
  }
}

/// Whether every process has a batch for the next step, of the same form. Collective.
bool Model::Training::all_have_more(const std::string& caller, const StepStatus& word,
                                    const std::string& form, int64_t step) const {
  if (word.same_form()) return word.max_rows() > 0;
  const Mesh& mesh = layouts.mesh();
  const bool ends = word.min_rows() == 0;
  const bool more = form != "no more";
  const std::string who =
      said_by(communicator_of(mesh).gather("batch", ends && more ? "more" : form));
  if (!ends) {
    throw ShapeError(caller, "all processes have batches of one form",
                     str(who, ", at step ", step + 1),
                     "give every process the same data, whose shape does not depend on the rows "
                     "that are read");
  }
  if (is_first_rank(mesh)) {
    std::cerr << "Warning: " << caller << ": the data do not end together (" << who
              << ", after step " << step << "): the epoch ends for all\n";
  }
  return false;
}

void Model::Training::do_on_all_ranks(const std::function<void()>& local) {
  exchange([&](StepStatus&) { local(); });
}

StepStatus Model::Training::exchange(const std::function<void(StepStatus&)>& local) {
  const StepStatus word = all_reduce_status(layouts.mesh(), [&](StepStatus& own) {
    local(own);
    if (stop) own.raise(StatusLevel::stop, "");
  });
  if (word.status() == StatusLevel::error) {
    throw CommError("step", "every process goes on", word.error_text(), "");
  }
  stop = word.status() >= StatusLevel::stop;
  return word;
}

}  // namespace tessera
