#include <tessera/framework/training/internal/loss_queue.hpp>

#include <utility>

#include <ATen/ATen.h>

namespace tessera::detail {

void LossQueue::push(const DTensor& loss, std::function<void(double)> read) {
  const at::Tensor& number = loss.blocks().at(0);
  const bool late = !number.is_cpu();
  entries_.push_back(
      {Download(number), late ? DeferredChecks::take() : DeferredChecks(), std::move(read)});
}

void LossQueue::drain(size_t left) {
  while (entries_.size() > left || (!entries_.empty() && !entries_.front().loss.is_late())) {
    Entry entry = std::move(entries_.front());
    entries_.pop_front();
    try {
      entry.checks.raise();
      entry.read(entry.loss.get().item<double>());
    } catch (...) {
      clear();
      throw;
    }
  }
}

}  // namespace tessera::detail
