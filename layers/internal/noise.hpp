#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/layer.hpp>

/// Helpers of layers that draw random numbers; `where` names a layer in errors.
namespace tessera::detail {

/// Returns the seed of a layer's next draws as an operation's input: from the model's stream with
/// `seed` folded in, or from `seed` alone if the context has no stream.
DTensor draw_seed(const CallContext& context, const std::string& path, const Mesh& mesh,
                  std::optional<int64_t> seed);

/// Throws ConfigError unless 0 <= rate < 1.
void check_rate(const std::string& where, double rate);

}  // namespace tessera::detail
