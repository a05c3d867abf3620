#pragma once

#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/framework/nn/losses/losses.hpp>

/// The options of every loss by Keras' keys, for config() and to rebuild a loss from it.
namespace tessera {

template <class Visit>
void fields(LossOptions& o, Visit visit) {
  visit("reduction", o.reduction);
  visit("name", o.name);
}

template <class Visit>
void fields(SparseCategoricalCrossentropyOptions& o, Visit visit) {
  visit("from_logits", o.from_logits);
  visit("ignore_class", o.ignore_class);
  visit("reduction", o.reduction);
  visit("axis", o.axis);
  visit("name", o.name);
}

template <class Visit>
void fields(CategoricalCrossentropyOptions& o, Visit visit) {
  visit("from_logits", o.from_logits);
  visit("label_smoothing", o.label_smoothing);
  visit("axis", o.axis);
  visit("reduction", o.reduction);
  visit("name", o.name);
}

template <class Visit>
void fields(BinaryCrossentropyOptions& o, Visit visit) {
  visit("from_logits", o.from_logits);
  visit("label_smoothing", o.label_smoothing);
  visit("axis", o.axis);
  visit("reduction", o.reduction);
  visit("name", o.name);
}

template <class Visit>
void fields(BinaryFocalCrossentropyOptions& o, Visit visit) {
  visit("apply_class_balancing", o.apply_class_balancing);
  visit("alpha", o.alpha);
  visit("gamma", o.gamma);
  visit("from_logits", o.from_logits);
  visit("label_smoothing", o.label_smoothing);
  visit("axis", o.axis);
  visit("reduction", o.reduction);
  visit("name", o.name);
}

template <class Visit>
void fields(CategoricalFocalCrossentropyOptions& o, Visit visit) {
  visit("alpha", o.alpha);
  visit("gamma", o.gamma);
  visit("from_logits", o.from_logits);
  visit("label_smoothing", o.label_smoothing);
  visit("axis", o.axis);
  visit("reduction", o.reduction);
  visit("name", o.name);
}

template <class Visit>
void fields(CategoricalGeneralizedCrossEntropyOptions& o, Visit visit) {
  visit("q", o.q);
  visit("reduction", o.reduction);
  visit("name", o.name);
}

template <class Visit>
void fields(DiceOptions& o, Visit visit) {
  visit("reduction", o.reduction);
  visit("name", o.name);
  visit("axis", o.axis);
}

template <class Visit>
void fields(TverskyOptions& o, Visit visit) {
  visit("alpha", o.alpha);
  visit("beta", o.beta);
  visit("reduction", o.reduction);
  visit("name", o.name);
  visit("axis", o.axis);
}

template <class Visit>
void fields(CircleOptions& o, Visit visit) {
  visit("gamma", o.gamma);
  visit("margin", o.margin);
  visit("remove_diagonal", o.remove_diagonal);
  visit("reduction", o.reduction);
  visit("name", o.name);
}

template <class Visit>
void fields(HuberOptions& o, Visit visit) {
  visit("delta", o.delta);
  visit("reduction", o.reduction);
  visit("name", o.name);
}

template <class Visit>
void fields(CosineSimilarityOptions& o, Visit visit) {
  visit("axis", o.axis);
  visit("reduction", o.reduction);
  visit("name", o.name);
}

}  // namespace tessera
