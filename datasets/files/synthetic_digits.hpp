#pragma once

#include <cstdint>

#include <tessera/datasets/files/idx.hpp>
#include <tessera/framework/base/random.hpp>

namespace tessera::detail {

/// Images (n, 28, 28), 0 background to 255 ink, and their labels (n,) in [0, 10).
struct LabelledImages {
  IdxArray images;
  IdxArray labels;
};

/// Draws handwriting-like digits: strokes with random shift, size, slant, rotation, width, wobble
/// and noise. Returns images [first, first + n) of an endless sequence; each depends only on `seed`
/// and its own number. Replaces MNIST if its files are missing: a small MLP reaches more than 0.9
/// test accuracy.
LabelledImages synthetic_digits(int64_t n, Seed seed, int64_t first = 0);

}  // namespace tessera::detail
