// Random numbers on a GPU: TensorFlow's stateless draws. Tests compare them bit for bit with those
// of base/random.cpp on the host.
#pragma once

#ifndef __CUDACC_RTC__
#include <cmath>
#include <cstring>
#endif

#include <tessera/framework/ops/internal/device_code.hpp>

namespace tessera::detail::kernels {

/// The distribution that is drawn, or dropout.
enum DrawKind : int { uniform_draw, normal_draw, truncated_normal_draw, dropout_draw };

/// The slice of a draw that is stored on this GPU: runs of consecutive elements, indexed by the
/// axes before them. A global element is one of the unsliced draw.
struct DrawParameters {
  static constexpr int max_axes = 12;
  unsigned int key[2];                ///< the stream's key
  unsigned long long upper;           ///< upper half of the stream's block counter
  int kind;                           ///< a DrawKind
  int axes;                           ///< number of axes before the runs
  long long extent[max_axes];         ///< extent of the slice along each axis
  long long first[max_axes];          ///< first index of the slice along each axis
  unsigned long long step[max_axes];  ///< global elements per index of each axis
  unsigned long long start;           ///< global element at which a run of index 0 begins
  unsigned long long run;             ///< elements per run
  float a, b;       ///< low and range, mean and standard deviation, or dropout's rate and scale
  const float* in;  ///< input of dropout
  float* out;       ///< the slice, dense

  /// Returns the number of calls that cover a run, one per group of four global elements.
  TESSERA_DEVICE unsigned long long groups() const { return (run + 6) / 4; }
};

struct DrawWords {
  unsigned int w[4];
};

/// Computes Philox4x32-10, as base/internal/philox.hpp does.
TESSERA_DEVICE DrawWords philox_words(DrawWords c, unsigned int k0, unsigned int k1) {
  for (int round = 0; round < 10; ++round) {
    const unsigned long long p0 = 0xD2511F53ULL * c.w[0], p1 = 0xCD9E8D57ULL * c.w[2];
    c = {{static_cast<unsigned int>(p1 >> 32) ^ c.w[1] ^ k0, static_cast<unsigned int>(p1),
          static_cast<unsigned int>(p0 >> 32) ^ c.w[3] ^ k1, static_cast<unsigned int>(p0)}};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return c;
}

TESSERA_DEVICE DrawWords block_of_words(const DrawParameters& p, unsigned long long lower,
                                        unsigned long long upper) {
  const unsigned long long top = p.upper + upper;
  return philox_words({{static_cast<unsigned int>(lower), static_cast<unsigned int>(lower >> 32),
                        static_cast<unsigned int>(top), static_cast<unsigned int>(top >> 32)}},
                      p.key[0], p.key[1]);
}

/// Returns a float in [0, 1) made of the low 23 bits.
TESSERA_DEVICE float unit_of(unsigned int word) {
  const unsigned int bits = (word & 0x7fffffU) | 0x3f800000U;
#ifdef __CUDACC_RTC__
  return __uint_as_float(bits) - 1.0f;
#else
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value - 1.0f;
#endif
}

/// Computes two normal values from two words.
TESSERA_DEVICE void normals_of(unsigned int a, unsigned int b, float& first, float& second) {
  const float unit = unit_of(a);
  const float u = unit < 1e-7f ? 1e-7f : unit;
  const float angle = static_cast<float>(6.283185307179586 * static_cast<double>(unit_of(b)));
  const float radius = sqrtf(-2.0f * logf(u));
  first = sinf(angle) * radius;
  second = cosf(angle) * radius;
}

/// Draws group `g` of four truncated normal values: pairs are drawn until four are within 2.
TESSERA_DEVICE void truncated_normals_of(const DrawParameters& p, unsigned long long g,
                                         float* values) {
  // A separate array: one that is indexed by a variable is kept in memory, not in registers.
  float drawn[4];
  int filled = 0;
  for (unsigned long long block = 0; filled < 4; ++block) {
    const unsigned long long lower = (g << 8) + block;
    const DrawWords words = block_of_words(p, lower, (g >> 56) + (lower < block ? 1 : 0));
    for (int i = 0; i < 4 && filled < 4; i += 2) {
      float pair[2];
      normals_of(words.w[i], words.w[i + 1], pair[0], pair[1]);
      for (int j = 0; j < 2 && filled < 4; ++j) {
        if (fabsf(pair[j]) < 2.0f) drawn[filled++] = pair[j];
      }
    }
  }
  for (int i = 0; i < 4; ++i) values[i] = drawn[i];
}

/// Draws group `g` of four values of the other kinds.
TESSERA_DEVICE void values_of(const DrawParameters& p, unsigned long long g, float* values) {
  const DrawWords words = block_of_words(p, g, 0);
  if (p.kind == normal_draw) {
    normals_of(words.w[0], words.w[1], values[0], values[1]);
    normals_of(words.w[2], words.w[3], values[2], values[3]);
  } else {
    for (int i = 0; i < 4; ++i) values[i] = unit_of(words.w[i]);
  }
}

/// Four floats that a GPU loads or stores in one access.
struct Four {
  float v[4];
};

TESSERA_DEVICE bool is_aligned(const void* address) {
  return reinterpret_cast<unsigned long long>(address) % sizeof(Four) == 0;
}

TESSERA_DEVICE Four load(const float* from) {
#ifdef __CUDACC_RTC__
  const float4 all = *reinterpret_cast<const float4*>(from);
  return {{all.x, all.y, all.z, all.w}};
#else
  Four all;
  std::memcpy(&all, from, sizeof all);
  return all;
#endif
}

TESSERA_DEVICE void store(float* to, const Four& all) {
#ifdef __CUDACC_RTC__
  *reinterpret_cast<float4*>(to) = make_float4(all.v[0], all.v[1], all.v[2], all.v[3]);
#else
  std::memcpy(to, &all, sizeof all);
#endif
}

/// Returns the result for a drawn value; `in` is the input element of dropout.
TESSERA_DEVICE float finished(const DrawParameters& p, float value, float in) {
  // No multiplication by the mask: a dropped infinity must give 0.
  if (p.kind == dropout_draw) return value >= p.a ? in * p.b : 0.0f;
  return value * p.b + p.a;
}

/// Runs call `index`; a draw takes groups() calls for each run.
TESSERA_DEVICE void draw_group(const DrawParameters& p, unsigned long long index) {
  unsigned long long begin = p.start, row = 0, group = index;
  // 64-bit divisions cost as much as a draw; most draws are a single run, which needs none.
  if (p.axes > 0) {
    row = index / p.groups();
    group = index - row * p.groups();
    unsigned long long rest = row;
    for (int axis = p.axes - 1; axis >= 0; --axis) {
      const unsigned long long extent = static_cast<unsigned long long>(p.extent[axis]);
      begin += (static_cast<unsigned long long>(p.first[axis]) + rest % extent) * p.step[axis];
      rest /= extent;
    }
  }
  const unsigned long long number = begin / 4 + group, first = 4 * number;
  const unsigned long long end = begin + p.run;
  if (first >= end) return;
  float values[4];
  if (p.kind == truncated_normal_draw) {
    truncated_normals_of(p, number, values);
  } else {
    values_of(p, number, values);
  }
  if (first >= begin && first + 4 <= end) {
    const unsigned long long at = row * p.run + (first - begin);
    if (is_aligned(p.out + at) && (p.kind != dropout_draw || is_aligned(p.in + at))) {
      Four all = {{0.0f, 0.0f, 0.0f, 0.0f}};
      if (p.kind == dropout_draw) all = load(p.in + at);
      for (int i = 0; i < 4; ++i) all.v[i] = finished(p, values[i], all.v[i]);
      store(p.out + at, all);
      return;
    }
  }
  for (int i = 0; i < 4; ++i) {
    const unsigned long long element = first + static_cast<unsigned long long>(i);
    if (element < begin || element >= end) continue;
    const unsigned long long at = row * p.run + (element - begin);
    p.out[at] = finished(p, values[i], p.kind == dropout_draw ? p.in[at] : 0.0f);
  }
}

TESSERA_KERNEL(draw_kernel, draw_group, DrawParameters)

}  // namespace tessera::detail::kernels
