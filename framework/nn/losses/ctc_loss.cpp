#include <tessera/framework/nn/losses/ctc_loss.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/losses/internal/function_loss.hpp>
#include <tessera/framework/ops/ctc.hpp>

namespace tessera {

using namespace detail;

namespace {

const Registered registered_ctc(loss_factories(), {"ctc"}, made_of<CTC, LossOptions>);

DTensor ctc(const DTensor& y_true, const DTensor& y_pred, const LossOptions& options) {
  try {
    return ops::ctc_loss(y_pred, ops::cast(y_true, at::kLong));
  } catch (const Error&) {
    rethrow_at(options.name);
  }
}

}  // namespace

CTC::CTC(LossOptions options) : LossHandle(function_loss("CTC", ctc, options, Labels::any)) {}

}  // namespace tessera
