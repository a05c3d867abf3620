#include <tessera/framework/autodiff/tape.hpp>

#include <c10/util/ScopeExit.h>

#include <tessera/framework/autodiff/internal/backward.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/wait_policy.hpp>

namespace tessera {

using namespace detail;

GradientTape::GradientTape(TapeOptions options) : record_(std::make_unique<TapeRecord>(options)) {}

GradientTape::~GradientTape() = default;

void GradientTape::watch(const DTensor& tensor) { record_->watch(tensor); }

void GradientTape::stop_recording() { record_->stop_recording(); }

const std::vector<std::shared_ptr<const VariableTag>>& GradientTape::variables() const {
  return record_->variables();
}

bool GradientTape::took_result(std::string_view name, std::string_view maker) const {
  return record_->took_result(name, maker);
}

std::vector<DTensor> GradientTape::gradient(const DTensor& target,
                                            const std::vector<DTensor>& sources,
                                            const GradientOptions& options) {
  if (used_ && !record_->options().persistent) {
    throw StateError("GradientTape", "gradient() is called once", "a second call",
                     "make the tape with {.persistent = true}");
  }
  used_ = true;
  // May be a step of a user's own training loop.
  adapt_wait_policy();
  // This tape does not record its own backward pass; outer tapes do.
  const bool persistent = record_->options().persistent;
  const bool resume = record_->is_recording() && persistent;
  stop_recording();
  const auto after = c10::make_scope_exit([&] {
    if (!persistent) record_->clear();
    if (resume) record_->start();
  });
  return TapeWalk(*record_, sources, options).run(target);
}

DTensor GradientTape::gradient(const DTensor& target, const DTensor& source,
                               const GradientOptions& options) {
  return gradient(target, std::vector<DTensor>{source}, options)[0];
}

}  // namespace tessera
