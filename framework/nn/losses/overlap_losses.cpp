#include <tessera/framework/nn/losses/overlap_losses.hpp>

#include <tessera/framework/nn/internal/epsilon.hpp>
#include <tessera/framework/nn/losses/internal/cross_entropy_common.hpp>
#include <tessera/framework/nn/losses/internal/function_loss.hpp>
#include <tessera/framework/ops/reduce.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(DiceOptions& o, const Visit& visit) {
  visit("reduction", o.reduction);
  visit("name", o.name);
  visit("axis", o.axis);
}

template <class Visit>
void fields(TverskyOptions& o, const Visit& visit) {
  visit("alpha", o.alpha);
  visit("beta", o.beta);
  visit("reduction", o.reduction);
  visit("name", o.name);
  visit("axis", o.axis);
}

namespace {

const Registered registered_dice(loss_factories(), {"dice"}, made_of<Dice, DiceOptions>);
const Registered registered_tversky(loss_factories(), {"tversky"},
                                    made_of<Tversky, TverskyOptions>);

DTensor dice(const DTensor& y_true, const DTensor& y_pred, const DiceOptions& options) {
  const auto sum = [&](const DTensor& x) { return ops::sum(x, options.axis); };
  const DTensor both = sum(y_true * y_pred) * 2;
  return one_less(both / (sum(y_true) + sum(y_pred) + keras_epsilon));
}

DTensor tversky(const DTensor& y_true, const DTensor& y_pred, const TverskyOptions& options) {
  const auto sum = [&](const DTensor& x) { return ops::sum(x, options.axis); };
  const DTensor both = sum(y_true * y_pred);
  const DTensor missed = sum(one_less(y_pred) * y_true) * options.alpha;
  const DTensor extra = sum(y_pred * one_less(y_true)) * options.beta;
  return one_less(both / (both + missed + extra + keras_epsilon));
}

}  // namespace

Dice::Dice(DiceOptions options) : LossHandle(function_loss("Dice", dice, options)) {}
Tversky::Tversky(TverskyOptions options) : LossHandle(function_loss("Tversky", tversky, options)) {}

}  // namespace tessera
