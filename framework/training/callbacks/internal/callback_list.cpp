#include <tessera/framework/training/callbacks/internal/callback_list.hpp>

#include <algorithm>
#include <exception>
#include <utility>

#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/training/callbacks/occasional_weight_reader.hpp>

namespace tessera::detail {

CallbackList::CallbackList(std::vector<CallbackHandle> callbacks, Trainer& trainer,
                           const Mesh& mesh, Callback::Params params)
    : callbacks_(std::move(callbacks)), is_alone_(mesh.is_local()) {
  params.is_first_rank = is_first_rank(mesh);
  std::stable_partition(callbacks_.begin(), callbacks_.end(),
                        [](const CallbackHandle& callback) { return !callback->is_called_last(); });
  progress_ = std::make_shared<ProgressLogger>(params, mesh.is_local());
  callbacks_.push_back(progress_);
  for (const CallbackHandle& callback : callbacks_) params.callbacks.push_back(&*callback);
  for (const CallbackHandle& callback : callbacks_) {
    callback->set_model(trainer);
    callback->set_params(params);
  }
  params_ = params;
}

void CallbackList::set_params(bool is_first_rank, bool restored_from_memory) const {
  Callback::Params params = params_;
  params.is_first_rank = is_first_rank;
  params.restored_from_memory = restored_from_memory;
  for (const CallbackHandle& callback : callbacks_) callback->set_params(params);
}

template <class Tell>
void CallbackList::tell_all(const Tell& tell) const {
  std::exception_ptr first;
  for (const CallbackHandle& callback : callbacks_) {
    try {
      tell(*callback);
    } catch (...) {
      if (is_alone_) throw;
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

void CallbackList::begin(Phase phase) const {
  progress_->end_steps();  // a validation begins
  tell_all([&](Callback& callback) {
    if (phase == Phase::train) callback.on_train_begin();
    if (phase == Phase::test) callback.on_test_begin();
    if (phase == Phase::predict) callback.on_predict_begin();
  });
}

void CallbackList::end(Phase phase, const Logs& logs) const {
  progress_->end_steps();
  tell_all([&](Callback& callback) {
    if (phase == Phase::train) callback.on_train_end(logs);
    if (phase == Phase::test) callback.on_test_end(logs);
    if (phase == Phase::predict) callback.on_predict_end();
  });
}

void CallbackList::epoch_begin(int64_t epoch) const {
  const ProfileSpan span(SpanKind::callback, "epoch_begin");
  tell_all([&](Callback& callback) { callback.on_epoch_begin(epoch); });
}

void CallbackList::epoch_end(int64_t epoch, Logs& logs) const {
  const ProfileSpan span(SpanKind::callback, "epoch_end");
  progress_->end_steps();
  tell_all([&](Callback& callback) { callback.on_epoch_end(epoch, logs); });
}

void CallbackList::batch_begin(Phase phase, int64_t batch) const {
  const ProfileSpan span(SpanKind::callback, "batch_begin");
  tell_all([&](Callback& callback) {
    if (phase == Phase::train) callback.on_train_batch_begin(batch);
    if (phase == Phase::test) callback.on_test_batch_begin(batch);
    if (phase == Phase::predict) callback.on_predict_batch_begin(batch);
  });
}

void CallbackList::batch_end(Phase phase, int64_t batch, int64_t rows, const Logs& logs) const {
  const ProfileSpan span(SpanKind::callback, "batch_end");
  progress_->set_rows(rows);
  tell_all([&](Callback& callback) {
    if (phase == Phase::train) callback.on_train_batch_end(batch, logs);
    if (phase == Phase::test) callback.on_test_batch_end(batch, logs);
    if (phase == Phase::predict) callback.on_predict_batch_end(batch);
  });
}

void CallbackList::interrupt() const {
  tell_all([](Callback& callback) { callback.on_interrupt(); });
}

void CallbackList::membership_change(const Callback::MembershipChange& change) const {
  tell_all([&](Callback& callback) { callback.on_membership_change(change); });
}

bool CallbackList::wants_batch_logs(Phase phase, int64_t batch) const {
  bool wants = false;
  for (const CallbackHandle& callback : callbacks_) {
    const bool overrides = (phase == Phase::train && callback.overrides_train_batch_end()) ||
                           (phase == Phase::test && callback.overrides_test_batch_end());
    // Without a short circuit: a callback may keep its answer for the call that follows.
    if (overrides && callback->wants_batch_logs(batch)) wants = true;
  }
  return wants;
}

bool CallbackList::accepts_non_finite_loss() const {
  return std::any_of(callbacks_.begin(), callbacks_.end(), [](const CallbackHandle& callback) {
    return callback->accepts_non_finite_loss();
  });
}

std::optional<int64_t> CallbackList::batches_to_weights() const {
  std::optional<int64_t> soonest;
  // The last one is the progress bar.
  for (auto at = callbacks_.begin(); at != callbacks_.end() - 1; ++at) {
    if (!at->overrides_train_batch_end()) continue;
    auto* const reader = dynamic_cast<OccasionalWeightReader*>(&**at);
    const std::optional<int64_t> next = reader ? reader->batches_to_weights() : 1;
    if (next && (!soonest || *next < *soonest)) soonest = next;
  }
  return soonest;
}

bool CallbackList::overrides_train_batch_end() const {
  // The last one is the progress bar.
  return std::any_of(callbacks_.begin(), callbacks_.end() - 1, [](const CallbackHandle& callback) {
    return callback.overrides_train_batch_end();
  });
}

}  // namespace tessera::detail
