#pragma once

#include <utility>
#include <vector>

#include "tests/support/small_model.hpp"

namespace tessera::test {

/// A fit of the small model: three epochs of five steps, the last one short, with validation.
namespace small_fit {

inline constexpr int64_t rows = 70, batch_size = 16, steps = 5, epochs = 3;

inline FitOptions options_of(std::vector<CallbackHandle> callbacks = {}) {
  return {.batch_size = batch_size,
          .epochs = epochs,
          .verbose = 0,
          .callbacks = std::move(callbacks),
          .validation_data = small_data(20, 2)};
}

}  // namespace small_fit
}  // namespace tessera::test
