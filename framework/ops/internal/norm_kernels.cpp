#include <tessera/framework/ops/internal/norm_kernels.hpp>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/ops/internal/bfloat16.hpp>
#include <tessera/framework/ops/internal/vectorized.hpp>

namespace tessera::detail {

namespace {

/// Rows [begin, end) of outer · rows, and what they are computed from. Pointers to moments start at
/// the first outer index; those to weights at the first group. Elements of x are E, and computed
/// with as T.
template <class T, class E>
struct NormRows {
  NormShape shape;
  int64_t begin = 0, end = 0;
  const E *x = nullptr, *dy = nullptr;
  const E* y = nullptr;  ///< the activation's results, for gradients
  const T *mean = nullptr, *factor = nullptr, *scale = nullptr;
  const T *offset = nullptr, *first = nullptr, *second = nullptr;
  E* out = nullptr;
  double *sums0 = nullptr, *sums1 = nullptr;        ///< sums of each outer and group
  double *weights0 = nullptr, *weights1 = nullptr;  ///< sums of each weight
};

/// Returns dy where an activation whose result is y let it pass, else 0.
template <FusedActivation A, class T>
TESSERA_VECTORIZED T passed(T dy, T y) {
  if constexpr (A == FusedActivation::none) return dy;
  if constexpr (A == FusedActivation::relu) return y <= 0 ? T(0) : dy;
  return ((y <= 0) | (y >= 6)) ? T(0) : dy;
}

template <class T, class E>
struct SumRows {
  TESSERA_VECTORIZED void run(const NormRows<T, E>& in) {
    const int64_t groups = in.shape.groups, features = in.shape.features;
    for (int64_t r = in.begin; r < in.end; ++r) {
      const int64_t moment = r / in.shape.rows * groups;
      const E* x = in.x + r * groups * features;
      double *sum = in.sums0 + moment, *squares = in.sums1 + moment;
      if (features == 1) {
#pragma omp simd
        for (int64_t c = 0; c < groups; ++c) {
          const double value = widened<T>(x[c]);
          sum[c] += value;
          squares[c] += value * value;
        }
        continue;
      }
      for (int64_t c = 0; c < groups; ++c, x += features) {
        double total = 0, total_squares = 0;
#pragma omp simd reduction(+ : total, total_squares)
        for (int64_t d = 0; d < features; ++d) {
          const double value = widened<T>(x[d]);
          total += value;
          total_squares += value * value;
        }
        sum[c] += total;
        squares[c] += total_squares;
      }
    }
  }
};

template <class T, class E, FusedActivation A>
struct ApplyRows {
  TESSERA_VECTORIZED void run(const NormRows<T, E>& in) {
    const int64_t groups = in.shape.groups, features = in.shape.features;
    for (int64_t r = in.begin; r < in.end; ++r) {
      const int64_t moment = r / in.shape.rows * groups;
      const E* x = in.x + r * groups * features;
      const T *mean = in.mean + moment, *factor = in.factor + moment;
      const T *scale = in.scale, *offset = in.offset;
      E* y = in.out + r * groups * features;
      if (features == 1) {
#pragma omp simd
        for (int64_t c = 0; c < groups; ++c) {
          y[c] = rounded<E>(
              activated<A>((widened<T>(x[c]) - mean[c]) * (factor[c] * scale[c]) + offset[c]));
        }
        continue;
      }
      for (int64_t c = 0; c < groups; ++c) {
        const T center = mean[c], by = factor[c];
#pragma omp simd
        for (int64_t d = 0; d < features; ++d) {
          y[d] = rounded<E>(activated<A>((widened<T>(x[d]) - center) * by * scale[d] + offset[d]));
        }
        x += features;
        y += features;
        scale += features;
        offset += features;
      }
    }
  }
};

/// Without features, a row's sums are those of its weights before scaling: only they are added up.
template <class T, class E, FusedActivation A>
struct GradientSumRows {
  TESSERA_VECTORIZED void run(const NormRows<T, E>& in) {
    const int64_t groups = in.shape.groups, features = in.shape.features;
    for (int64_t r = in.begin; r < in.end; ++r) {
      const int64_t moment = r / in.shape.rows * groups;
      const E *x = in.x + r * groups * features, *dy = in.dy + r * groups * features;
      const E* y = A == FusedActivation::none ? dy : in.y + r * groups * features;
      const T *mean = in.mean + moment, *factor = in.factor + moment, *scale = in.scale;
      double *sum = in.sums0 + moment, *products = in.sums1 + moment;
      if (features == 1) {
#pragma omp simd
        for (int64_t c = 0; c < groups; ++c) {
          const T each = passed<A>(widened<T>(dy[c]), widened<T>(y[c]));
          sum[c] += static_cast<double>(each);
          products[c] += static_cast<double>(each * ((widened<T>(x[c]) - mean[c]) * factor[c]));
        }
        continue;
      }
      double *weights0 = in.weights0, *weights1 = in.weights1;
      for (int64_t c = 0; c < groups; ++c) {
        const T center = mean[c], by = factor[c];
        double total = 0, total_products = 0;
#pragma omp simd reduction(+ : total, total_products)
        for (int64_t d = 0; d < features; ++d) {
          const T each = passed<A>(widened<T>(dy[d]), widened<T>(y[d]));
          const T product = each * ((widened<T>(x[d]) - center) * by);
          total += static_cast<double>(each * scale[d]);
          total_products += static_cast<double>(product * scale[d]);
          weights0[d] += static_cast<double>(each);
          weights1[d] += static_cast<double>(product);
        }
        sum[c] += total;
        products[c] += total_products;
        x += features;
        dy += features;
        y += features;
        scale += features;
        weights0 += features;
        weights1 += features;
      }
    }
  }
};

template <class T, class E, FusedActivation A>
struct GradientRows {
  TESSERA_VECTORIZED void run(const NormRows<T, E>& in) {
    const int64_t groups = in.shape.groups, features = in.shape.features;
    for (int64_t r = in.begin; r < in.end; ++r) {
      const int64_t moment = r / in.shape.rows * groups;
      const E *x = in.x + r * groups * features, *dy = in.dy + r * groups * features;
      const E* y = A == FusedActivation::none ? dy : in.y + r * groups * features;
      const T *mean = in.mean + moment, *factor = in.factor + moment, *scale = in.scale;
      const T *first = in.first + moment, *second = in.second + moment;
      E* dx = in.out + r * groups * features;
      if (features == 1) {
#pragma omp simd
        for (int64_t c = 0; c < groups; ++c) {
          const T h = (widened<T>(x[c]) - mean[c]) * factor[c];
          const T each = passed<A>(widened<T>(dy[c]), widened<T>(y[c]));
          dx[c] = rounded<E>((each * scale[c] - first[c] - h * second[c]) * factor[c]);
        }
        continue;
      }
      for (int64_t c = 0; c < groups; ++c) {
        const T center = mean[c], by = factor[c], less = first[c], less_h = second[c];
#pragma omp simd
        for (int64_t d = 0; d < features; ++d) {
          const T h = (widened<T>(x[d]) - center) * by;
          const T each = passed<A>(widened<T>(dy[d]), widened<T>(y[d]));
          dx[d] = rounded<E>((each * scale[d] - less - h * less_h) * by);
        }
        x += features;
        dy += features;
        y += features;
        dx += features;
        scale += features;
      }
    }
  }
};

/// Elements from which another thread pays off.
constexpr int64_t elements_per_thread = 32768;

int64_t rows_of(const NormShape& shape) { return shape.outer * shape.rows; }

/// Returns how many rows a thread computes at least.
int64_t rows_per_thread(const NormShape& shape) {
  return std::max<int64_t>(1, elements_per_thread / std::max<int64_t>(1, shape.weights()));
}

template <class T, class E>
NormRows<T, E> rows_from(const NormBlock& block) {
  const auto data = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.const_data_ptr<T>() : nullptr;
  };
  NormRows<T, E> rows;
  rows.shape = block.shape;
  rows.x = elements_of<E>(block.x);
  rows.mean = data(block.mean);
  rows.factor = data(block.factor);
  rows.scale = data(block.scale);
  if (block.y.defined()) rows.y = elements_of<E>(block.y);
  return rows;
}

/// Runs a body on all rows, several threads at a time.
template <class Body, class T, class E>
void run_rows(const NormRows<T, E>& all) {
  at::parallel_for(0, rows_of(all.shape), rows_per_thread(all.shape),
                   [&](int64_t begin, int64_t end) {
                     NormRows<T, E> rows = all;
                     rows.begin = begin;
                     rows.end = end;
                     vectorized<Body, const NormRows<T, E>&>(rows);
                   });
}

/// Runs a body that adds up. Each of a fixed number of chunks has sums of its own, which are added
/// in their order. Returns (2, moments) and (2, weights).
template <class Body, class T, class E>
std::pair<at::Tensor, at::Tensor> sum_rows(const NormRows<T, E>& all) {
  const NormShape& shape = all.shape;
  const int64_t rows = rows_of(shape), least = rows_per_thread(shape);
  const int64_t chunks = std::clamp<int64_t>(rows / least, 1, at::get_num_threads());
  // An outer index that lies within one chunk needs no sums of its own in the others.
  const bool apart = shape.rows > 1 && chunks > 1;
  const int64_t moments = shape.moments(), weights = shape.features > 1 ? shape.weights() : 0;
  const at::Tensor sums = at::zeros({apart ? chunks : 1, 2, moments}, at::kDouble);
  const at::Tensor by_weight = at::zeros({chunks, 2, weights}, at::kDouble);
  at::parallel_for(0, chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; ++chunk) {
      NormRows<T, E> part = all;
      part.begin = rows * chunk / chunks;
      part.end = rows * (chunk + 1) / chunks;
      part.sums0 = sums.data_ptr<double>() + (apart ? chunk : 0) * 2 * moments;
      part.sums1 = part.sums0 + moments;
      part.weights0 = by_weight.data_ptr<double>() + chunk * 2 * weights;
      part.weights1 = part.weights0 + weights;
      vectorized<Body, const NormRows<T, E>&>(part);
    }
  });
  return {sums.sum(0), by_weight.sum(0)};
}

void check_count(const at::Tensor& tensor, int64_t count) {
  if (!tensor.defined() || tensor.numel() == count) return;
  throw ShapeError("normalization", str("a block has ", count, " elements"),
                   to_string(tensor.sizes().vec()), "pass inputs that fit together");
}

/// Throws ShapeError unless all tensors fit the shape: kernels do not check their memory.
void check_counts(const NormBlock& block, const at::Tensor& like_x, const at::Tensor& weight,
                  const std::vector<at::Tensor>& moments) {
  const int64_t all = rows_of(block.shape) * block.shape.weights();
  for (const at::Tensor& tensor : {block.x, block.y, like_x}) check_count(tensor, all);
  for (const at::Tensor& tensor : {block.scale, weight}) check_count(tensor, block.shape.weights());
  for (const at::Tensor& tensor : {block.mean, block.factor}) {
    check_count(tensor, block.shape.moments());
  }
  for (const at::Tensor& tensor : moments) check_count(tensor, block.shape.moments());
}

/// Calls run(T(), rounded<E>()): what to compute with, and the elements of x.
template <class F>
auto for_dtype(const at::Tensor& x, const F& run) {
  if (x.scalar_type() == at::kDouble) return run(double(), double());
  if (x.scalar_type() == at::kBFloat16) return run(float(), Bfloat16());
  return run(float(), float());
}

/// Computes in ATen, for blocks on GPUs, with x as (outer, rows, groups, features).
struct OnGpu {
  explicit OnGpu(const NormBlock& of) : block(of), s(of.shape) {}
  at::Tensor full(const at::Tensor& x) const {
    return x.view({s.outer, s.rows, s.groups, s.features});
  }
  at::Tensor moment(const at::Tensor& m) const { return m.view({s.outer, 1, s.groups, 1}); }
  at::Tensor weight(const at::Tensor& w) const { return w.view({s.groups, s.features}); }
  at::Tensor h() const { return (full(block.x) - moment(block.mean)) * moment(block.factor); }
  at::Tensor activated(const at::Tensor& values) const {
    if (block.activation == FusedActivation::none) return values;
    return block.activation == FusedActivation::relu ? at::relu(values)
                                                     : at::hardtanh(values, 0, 6);
  }
  at::Tensor passed(const at::Tensor& dy) const {
    if (block.activation == FusedActivation::none) return dy;
    return block.activation == FusedActivation::relu ? at::threshold_backward(dy, block.y, 0)
                                                     : at::hardtanh_backward(dy, block.y, 0, 6);
  }
  at::Tensor sum_of(const at::Tensor& values, at::IntArrayRef axes) const {
    return values.sum(axes, false, at::kDouble).flatten();
  }
  static at::Tensor both(const at::Tensor& a, const at::Tensor& b) { return at::stack({a, b}); }

  at::Tensor sums() const {
    const auto [variance, mean] = at::var_mean(full(block.x), at::IntArrayRef{1, 3}, 0);
    const at::Tensor center = mean.flatten().to(at::kDouble);
    const at::Tensor squares = variance.flatten().to(at::kDouble) + center * center;
    return both(center, squares) * (s.rows * s.features);
  }
  std::pair<at::Tensor, at::Tensor> gradient_sums(const at::Tensor& dy, bool scaled) const {
    const at::Tensor each = full(passed(dy)), product = each * h();
    if (!scaled) return {both(sum_of(each, {1, 3}), sum_of(product, {1, 3})), at::Tensor()};
    const at::Tensor scale = weight(block.scale);
    return {both(sum_of(each * scale, {1, 3}), sum_of(product * scale, {1, 3})),
            both(sum_of(each, {0, 1}), sum_of(product, {0, 1}))};
  }

  const NormBlock& block;
  const NormShape& s;
};

}  // namespace

at::Tensor norm_sums(const NormBlock& block) {
  if (!block.x.is_cpu()) return OnGpu(block).sums();
  return for_dtype(block.x, [&](auto type, auto element) {
    using T = decltype(type);
    using E = decltype(element);
    return sum_rows<SumRows<T, E>>(rows_from<T, E>(block)).first;
  });
}

at::Tensor norm_apply(const NormBlock& block, const at::Tensor& offset) {
  check_counts(block, {}, offset, {});
  if (!block.x.is_cpu()) {
    const OnGpu gpu(block);
    const at::Tensor y = gpu.h().mul_(gpu.weight(block.scale)).add_(gpu.weight(offset));
    return gpu.activated(y).view(block.x.sizes());
  }
  const at::Tensor y = at::empty_like(block.x);
  for_dtype(block.x, [&](auto type, auto element) {
    using T = decltype(type);
    using E = decltype(element);
    NormRows<T, E> rows = rows_from<T, E>(block);
    rows.offset = offset.const_data_ptr<T>();
    rows.out = elements_of<E>(y);
    for_activation(block.activation,
                   [&](auto activation) { run_rows<ApplyRows<T, E, activation()>>(rows); });
  });
  return y;
}

std::pair<at::Tensor, at::Tensor> norm_gradient_sums(const NormBlock& block, const at::Tensor& dy,
                                                     bool scaled) {
  check_counts(block, dy, {}, {});
  if (!block.x.is_cpu()) return OnGpu(block).gradient_sums(dy, scaled);
  return for_dtype(block.x, [&](auto type, auto element) {
    using T = decltype(type);
    using E = decltype(element);
    NormRows<T, E> rows = rows_from<T, E>(block);
    rows.dy = elements_of<E>(dy);
    auto [sums, weights] = for_activation(block.activation, [&](auto activation) {
      return sum_rows<GradientSumRows<T, E, activation()>>(rows);
    });
    if (block.shape.features > 1 || !scaled) return std::pair(sums, weights);
    const at::Tensor each = sums.view({2, block.shape.outer, block.shape.groups});
    return std::pair((each * block.scale.flatten()).view({2, -1}), each.sum(1));
  });
}

at::Tensor norm_gradient(const NormBlock& block, const at::Tensor& dy, const at::Tensor& first,
                         const at::Tensor& second) {
  check_counts(block, dy, {}, {first, second});
  if (!block.x.is_cpu()) {
    const OnGpu gpu(block);
    const at::Tensor from = gpu.full(gpu.passed(dy)) * gpu.weight(block.scale) - gpu.moment(first);
    return (from - gpu.h() * gpu.moment(second))
        .mul_(gpu.moment(block.factor))
        .view(block.x.sizes());
  }
  const at::Tensor dx = at::empty_like(block.x);
  for_dtype(block.x, [&](auto type, auto element) {
    using T = decltype(type);
    using E = decltype(element);
    NormRows<T, E> rows = rows_from<T, E>(block);
    rows.dy = elements_of<E>(dy);
    rows.first = first.const_data_ptr<T>();
    rows.second = second.const_data_ptr<T>();
    rows.out = elements_of<E>(dx);
    for_activation(block.activation,
                   [&](auto activation) { run_rows<GradientRows<T, E, activation()>>(rows); });
  });
  return dx;
}

}  // namespace tessera::detail
