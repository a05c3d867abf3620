#pragma once

#include <string>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/optimizer/learning_rate.hpp>

namespace tessera {

/// An optimizer's "learning_rate": a number, a serialized schedule, or `otherwise` where absent.
/// Throws ConfigError.
LearningRate take_learning_rate(JsonObject& config, double otherwise);

/// Reads a key into an option, which keeps its value where the key is absent.
template <class T>
void take(JsonObject& config, const std::string& key, T& out) {
  out = config.take_or(key, out);
}

}  // namespace tessera
