#pragma once

#include <tessera/framework/nn/losses.hpp>
#include <tessera/framework/nn/option_fields.hpp>

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
