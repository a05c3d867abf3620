#pragma once

#include <memory>
#include <string>

#include <tessera/optimizers/adam.hpp>

namespace tessera {

/// The optimizer behind Adam and AdamW, called `class_name`.
std::shared_ptr<Optimizer> make_adam(const std::string& class_name, double learning_rate,
                                     const AdamOptions& options);

}  // namespace tessera
