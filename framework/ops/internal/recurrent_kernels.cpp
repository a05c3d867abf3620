#include <tessera/framework/ops/internal/recurrent_kernels.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/ops/internal/vectorized.hpp>

namespace tessera::detail {

int64_t gates_of(RecurrentKind kind) {
  if (kind == RecurrentKind::simple_rnn) return 1;
  return kind == RecurrentKind::lstm ? 4 : 3;
}

int64_t saved_gates_of(RecurrentKind kind) { return kind == RecurrentKind::simple_rnn ? 0 : 4; }

namespace {

// The functions of float32 have no branches, not even comparisons of floats, which keep loops from
// being vectorized since they may trap: sizes are compared as integers, in whose order they are.

/// All bits set if a < b, else none.
TESSERA_VECTORIZED int32_t if_below(int32_t a, int32_t b) { return (a - b) >> 31; }
TESSERA_VECTORIZED float select(int32_t mask, float a, float b) {
  return std::bit_cast<float>((std::bit_cast<int32_t>(a) & mask) |
                              (std::bit_cast<int32_t>(b) & ~mask));
}
/// The bits of |x|.
TESSERA_VECTORIZED int32_t size_bits(float x) { return std::bit_cast<int32_t>(x) & 0x7fffffff; }
/// All bits set for NaN.
TESSERA_VECTORIZED int32_t if_nan(float x) { return if_below(0x7f800000, size_bits(x)); }
/// min(|x|, limit).
TESSERA_VECTORIZED float bounded_size(float x, float limit) {
  const int32_t size = size_bits(x), most = std::bit_cast<int32_t>(limit);
  return std::bit_cast<float>(most + ((size - most) & if_below(size, most)));
}

/// e^x for x in [-87, 88], to about one unit in the last place: x = n ln 2 + r with |r| <= ln 2 /
/// 2, and a polynomial of r (Cephes' expf).
TESSERA_VECTORIZED float exp_of(float x) {
  constexpr float rounds = 12582912;  // 1.5 · 2^23: a sum with it has no fraction
  const float sum = x * 1.44269504f + rounds, whole = sum - rounds;
  const int32_t n = std::bit_cast<int32_t>(sum) - std::bit_cast<int32_t>(rounds);
  const float r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return (p * (r * r) + r + 1) * std::bit_cast<float>((n + 127) << 23);
}

/// 1 / (1 + e^-x), from e^-|x|, so that small results keep their digits.
TESSERA_VECTORIZED float sigmoid_of(float x) {
  const float e = exp_of(-bounded_size(x, 87)), upper = 1 / (1 + e);
  const float result = select(std::bit_cast<int32_t>(x) >> 31, e * upper, upper);
  return select(if_nan(x), x, result);
}
TESSERA_VECTORIZED double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

/// tanh: a polynomial near 0, where a quotient would lose digits (Cephes' tanhf).
TESSERA_VECTORIZED float tanh_of(float x) {
  const float square = x * x;
  float p = -5.70498872745e-3f;
  p = p * square + 2.06390887954e-2f;
  p = p * square - 5.37397155531e-2f;
  p = p * square + 1.33314422036e-1f;
  p = p * square - 3.33332819422e-1f;
  const float near = p * square * x + x;
  const float size = 1 - 2 / (exp_of(2 * bounded_size(x, 20)) + 1);
  const int32_t sign = std::bit_cast<int32_t>(x) & int32_t(0x80000000u);
  const float far = std::bit_cast<float>(std::bit_cast<int32_t>(size) | sign);
  const float result = select(if_below(size_bits(x), std::bit_cast<int32_t>(0.625f)), near, far);
  return select(if_nan(x), x, result);
}
TESSERA_VECTORIZED double tanh_of(double x) { return std::tanh(x); }

/// Rows [begin, end) of one step. x, dx and, going forward, the gates have a stride between rows,
/// that of gates that nobody reads is 0; everything else is dense.
template <class T>
struct StepRows {
  RecurrentKind kind = RecurrentKind::lstm;
  int64_t begin = 0, end = 0, units = 0, x_stride = 0, mask_stride = 0;
  const bool* mask = nullptr;
  const T *x = nullptr, *product = nullptr, *bias = nullptr;
  const T *h_before = nullptr, *c_before = nullptr;
  T *h = nullptr, *c = nullptr, *gates = nullptr;
  int64_t gates_stride = 0;
  /// Gradients: of this step's states from later ones and from its results; of its gates, with a
  /// stride between rows that may be 0; of the inputs; of the product; of the states before it, but
  /// for the part that goes through the product.
  const T *dh = nullptr, *dh_result = nullptr, *dc_result = nullptr, *dgates = nullptr;
  int64_t dgates_stride = 0;
  T *dc = nullptr, *dx = nullptr, *dproduct = nullptr, *dh_before = nullptr;
};

template <class T>
TESSERA_VECTORIZED void copy_row(const T* from, T* to, int64_t count) {
#pragma omp simd
  for (int64_t u = 0; u < count; ++u) to[u] = from[u];
}

template <class T>
TESSERA_VECTORIZED void lstm_row(const StepRows<T>& s, int64_t row) {
  const int64_t n = s.units;
  const T *x = s.x + row * s.x_stride, *p = s.product + row * 4 * n, *before = s.c_before + row * n;
  const T* b = s.bias;
  T *gates = s.gates + row * s.gates_stride, *h = s.h + row * n, *c = s.c + row * n;
#pragma omp simd
  for (int64_t u = 0; u < n; ++u) {
    const T i = sigmoid_of(x[u] + p[u] + b[u]), f = sigmoid_of(x[n + u] + p[n + u] + b[n + u]);
    const T g = tanh_of(x[2 * n + u] + p[2 * n + u] + b[2 * n + u]);
    const T o = sigmoid_of(x[3 * n + u] + p[3 * n + u] + b[3 * n + u]);
    const T carry = f * before[u] + i * g;
    gates[u] = i;
    gates[n + u] = f;
    gates[2 * n + u] = g;
    gates[3 * n + u] = o;
    c[u] = carry;
    h[u] = o * tanh_of(carry);
  }
}

template <class T>
TESSERA_VECTORIZED void gru_row(const StepRows<T>& s, int64_t row) {
  const int64_t n = s.units;
  const T *x = s.x + row * s.x_stride, *p = s.product + row * 3 * n, *b = s.bias;
  const T* before = s.h_before + row * n;
  T *gates = s.gates + row * s.gates_stride, *h = s.h + row * n;
#pragma omp simd
  for (int64_t u = 0; u < n; ++u) {
    const T z = sigmoid_of(x[u] + p[u] + b[u]), r = sigmoid_of(x[n + u] + p[n + u] + b[n + u]);
    const T m = p[2 * n + u] + b[2 * n + u];
    const T candidate = tanh_of(x[2 * n + u] + r * m);
    gates[u] = z;
    gates[n + u] = r;
    gates[2 * n + u] = candidate;
    gates[3 * n + u] = m;
    h[u] = candidate + z * (before[u] - candidate);
  }
}

template <class T>
TESSERA_VECTORIZED void simple_row(const StepRows<T>& s, int64_t row) {
  const int64_t n = s.units;
  const T *x = s.x + row * s.x_stride, *p = s.product + row * n, *b = s.bias;
  T* h = s.h + row * n;
#pragma omp simd
  for (int64_t u = 0; u < n; ++u) h[u] = tanh_of(x[u] + p[u] + b[u]);
}

template <class T>
struct StepForwardRows {
  TESSERA_VECTORIZED void run(const StepRows<T>& s) {
    const int64_t n = s.units;
    for (int64_t row = s.begin; row < s.end; ++row) {
      if (s.mask && !s.mask[row * s.mask_stride]) {
        copy_row(s.h_before + row * n, s.h + row * n, n);
        if (s.c) copy_row(s.c_before + row * n, s.c + row * n, n);
        if (s.gates) std::fill_n(s.gates + row * s.gates_stride, 4 * n, T(0));
      } else if (s.kind == RecurrentKind::lstm) {
        lstm_row(s, row);
      } else if (s.kind == RecurrentKind::gru) {
        gru_row(s, row);
      } else {
        simple_row(s, row);
      }
    }
  }
};

template <class T>
TESSERA_VECTORIZED void lstm_gradient_row(const StepRows<T>& s, int64_t row) {
  const int64_t n = s.units;
  const T *gates = s.gates + row * 4 * n, *before = s.c_before + row * n, *c = s.c + row * n;
  const T *dh = s.dh + row * n, *dh_result = s.dh_result + row * n;
  const T *dc_result = s.dc_result + row * n, *dgates = s.dgates + row * s.dgates_stride;
  T *dx = s.dx + row * s.x_stride, *dc = s.dc + row * n, *dh_before = s.dh_before + row * n;
#pragma omp simd
  for (int64_t u = 0; u < n; ++u) {
    const T i = gates[u], f = gates[n + u], g = gates[2 * n + u], o = gates[3 * n + u];
    const T d = dh[u] + dh_result[u], t = tanh_of(c[u]);
    const T dcarry = dc[u] + dc_result[u] + d * o * (1 - t * t);
    dx[u] = (dcarry * g + dgates[u]) * i * (1 - i);
    dx[n + u] = (dcarry * before[u] + dgates[n + u]) * f * (1 - f);
    dx[2 * n + u] = (dcarry * i + dgates[2 * n + u]) * (1 - g * g);
    dx[3 * n + u] = (d * t + dgates[3 * n + u]) * o * (1 - o);
    dc[u] = dcarry * f;
    dh_before[u] = 0;
  }
}

template <class T>
TESSERA_VECTORIZED void gru_gradient_row(const StepRows<T>& s, int64_t row) {
  const int64_t n = s.units;
  const T *gates = s.gates + row * 4 * n, *before = s.h_before + row * n;
  const T *dh = s.dh + row * n, *dh_result = s.dh_result + row * n;
  const T* dgates = s.dgates + row * s.dgates_stride;
  T *dx = s.dx + row * s.x_stride, *dproduct = s.dproduct + row * s.x_stride;
  T* dh_before = s.dh_before + row * n;
#pragma omp simd
  for (int64_t u = 0; u < n; ++u) {
    const T z = gates[u], r = gates[n + u], candidate = gates[2 * n + u], m = gates[3 * n + u];
    const T d = dh[u] + dh_result[u];
    const T dcandidate = (d * (1 - z) + dgates[2 * n + u]) * (1 - candidate * candidate);
    const T dz = (d * (before[u] - candidate) + dgates[u]) * z * (1 - z);
    const T dr = (dcandidate * m + dgates[n + u]) * r * (1 - r);
    dx[u] = dproduct[u] = dz;
    dx[n + u] = dproduct[n + u] = dr;
    dx[2 * n + u] = dcandidate;
    dproduct[2 * n + u] = dcandidate * r + dgates[3 * n + u];
    dh_before[u] = d * z;
  }
}

template <class T>
TESSERA_VECTORIZED void simple_gradient_row(const StepRows<T>& s, int64_t row) {
  const int64_t n = s.units;
  const T *h = s.h + row * n, *dh = s.dh + row * n, *dh_result = s.dh_result + row * n;
  T *dx = s.dx + row * s.x_stride, *dh_before = s.dh_before + row * n;
#pragma omp simd
  for (int64_t u = 0; u < n; ++u) {
    dx[u] = (dh[u] + dh_result[u]) * (1 - h[u] * h[u]);
    dh_before[u] = 0;
  }
}

template <class T>
struct StepGradientRows {
  TESSERA_VECTORIZED void run(const StepRows<T>& s) {
    const int64_t n = s.units, width = gates_of(s.kind) * n;
    for (int64_t row = s.begin; row < s.end; ++row) {
      if (s.mask && !s.mask[row * s.mask_stride]) {
        std::fill_n(s.dx + row * s.x_stride, width, T(0));
        if (s.dproduct != s.dx) std::fill_n(s.dproduct + row * s.x_stride, width, T(0));
        for (int64_t u = row * n; u < (row + 1) * n; ++u) {
          s.dh_before[u] = s.dh[u] + s.dh_result[u];
          if (s.dc) s.dc[u] += s.dc_result[u];
        }
      } else if (s.kind == RecurrentKind::lstm) {
        lstm_gradient_row(s, row);
      } else if (s.kind == RecurrentKind::gru) {
        gru_gradient_row(s, row);
      } else {
        simple_gradient_row(s, row);
      }
    }
  }
};

/// Runs a body on all rows of a step, several threads at a time. Each thread has memory for the
/// `unread_gates` of a row.
template <class Body, class T>
void run_step_rows(const StepRows<T>& step, int64_t rows, int64_t unread_gates = 0) {
  constexpr int64_t units_per_thread = 4096;
  const int64_t least = std::max<int64_t>(1, units_per_thread / std::max<int64_t>(1, step.units));
  at::parallel_for(0, rows, least, [&](int64_t begin, int64_t end) {
    StepRows<T> part = step;
    part.begin = begin;
    part.end = end;
    std::vector<T> unread(static_cast<size_t>(unread_gates));
    if (unread_gates > 0) part.gates = unread.data();
    vectorized<Body, const StepRows<T>&>(part);
  });
}

void check_size(const at::Tensor& tensor, at::IntArrayRef sizes) {
  if (!tensor.defined() || tensor.sizes() == sizes) return;
  throw ShapeError("recurrence", "a block has sizes " + to_string(Shape(sizes.vec())),
                   to_string(tensor.sizes().vec()), "pass inputs that fit together");
}

/// Throws ShapeError unless all tensors fit x and h: kernels do not check their memory.
void check_sizes(const Recurrence& in) {
  const int64_t rows = in.x.size(0), units = in.h.size(1), width = gates_of(in.kind) * units;
  check_size(in.x, {rows, in.x.size(1), width});
  check_size(in.kernel, {units, width});
  check_size(in.bias, {width});
  for (const at::Tensor& state : {in.h, in.c}) check_size(state, {rows, units});
  check_size(in.mask, {rows, in.x.size(1)});
}

void check_sizes(const Recurrence& in, const RecurrentStates& states) {
  const int64_t rows = in.x.size(0), steps = in.x.size(1), units = in.h.size(1);
  for (const at::Tensor& each : {states.h, states.c}) check_size(each, {steps, rows, units});
  check_size(states.gates, {steps, rows, saved_gates_of(in.kind) * units});
}

template <class T>
T* data_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<T>() : nullptr;
}

/// Returns what all steps have in common.
template <class T>
StepRows<T> all_steps(const Recurrence& in) {
  StepRows<T> step;
  step.kind = in.kind;
  step.units = in.h.size(1);
  step.x_stride = in.x.stride(0);
  step.bias = data_of<T>(in.bias);
  if (in.mask.defined()) step.mask_stride = in.mask.stride(0);
  return step;
}

template <class T>
void run_steps(const Recurrence& in, const RecurrentStates& out) {
  const int64_t steps = in.x.size(1), rows = in.x.size(0);
  const at::Tensor product = at::empty({rows, in.x.size(2)}, in.x.options());
  at::Tensor target = product;
  StepRows<T> step = all_steps<T>(in);
  const at::Tensor no_bias =
      in.bias.defined() ? at::Tensor() : at::zeros({in.x.size(2)}, in.x.options());
  if (no_bias.defined()) step.bias = data_of<T>(no_bias);
  if (out.gates.defined()) step.gates_stride = out.gates.size(2);
  const int64_t unread = out.gates.defined() ? 0 : saved_gates_of(in.kind) * step.units;
  for (int64_t s = 0; s < steps; ++s) {
    const int64_t time = in.reverse ? steps - 1 - s : s;
    const at::Tensor before = s == 0 ? in.h : out.h[s - 1];
    at::mm_out(target, before, in.kernel);
    step.x = data_of<T>(in.x) + time * in.x.stride(1);
    step.product = data_of<T>(product);
    step.h_before = data_of<T>(before);
    step.h = data_of<T>(out.h) + s * out.h.stride(0);
    if (out.c.defined()) {
      step.c_before = s == 0 ? data_of<T>(in.c) : step.c;
      step.c = data_of<T>(out.c) + s * out.c.stride(0);
    }
    if (out.gates.defined()) step.gates = data_of<T>(out.gates) + s * out.gates.stride(0);
    if (in.mask.defined()) step.mask = data_of<bool>(in.mask) + time * in.mask.stride(1);
    run_step_rows<StepForwardRows<T>>(step, rows, unread);
  }
}

/// Returns `count` rows of all inputs, from row `first` on.
Recurrence rows_of(Recurrence in, int64_t first, int64_t count) {
  for (at::Tensor* each : {&in.x, &in.h, &in.c, &in.mask}) {
    if (each->defined()) *each = each->narrow(0, first, count);
  }
  return in;
}

RecurrentStates rows_of(RecurrentStates states, int64_t first, int64_t count) {
  for (at::Tensor* each : {&states.h, &states.c, &states.gates}) {
    if (each->defined()) *each = each->narrow(1, first, count);
  }
  return states;
}

/// Has each thread run all steps of its own rows, if these are enough for its products: threads
/// that share products wait for each other in every step.
template <class T>
void run_rows(const Recurrence& in, const RecurrentStates& out) {
  constexpr int64_t rows_per_thread = 16;
  const int64_t rows = in.x.size(0);
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  if (threads == 1 || rows < rows_per_thread * threads) return run_steps<T>(in, out);
  at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    const c10::InferenceMode inference;
    for (int64_t thread = begin; thread < end; ++thread) {
      const int64_t first = rows * thread / threads;
      const int64_t count = rows * (thread + 1) / threads - first;
      run_steps<T>(rows_of(in, first, count), rows_of(out, first, count));
    }
  });
}

template <class T>
RecurrentGradients gradients_of_steps(const Recurrence& in, const RecurrentStates& states,
                                      const RecurrentStates& results) {
  const at::Tensor &dh_results = results.h, &dc_results = results.c;
  const int64_t steps = in.x.size(1), rows = in.x.size(0), units = in.h.size(1);
  RecurrentGradients out;
  out.x = at::empty_like(in.x);
  // A GRU's candidate gets its product times the reset gate.
  const bool apart = in.kind == RecurrentKind::gru;
  const at::Tensor dproduct = apart ? at::empty_like(in.x) : out.x;
  at::Tensor dh = at::zeros({rows, units}, in.x.options()), dh_before = at::empty_like(dh);
  if (in.c.defined()) out.c = at::zeros_like(dh);
  const at::Tensor turned = in.kernel.t();
  StepRows<T> step = all_steps<T>(in);
  const at::Tensor no_dgates = at::zeros({saved_gates_of(in.kind) * units}, in.x.options());
  step.dgates = data_of<T>(no_dgates);
  if (results.gates.defined()) step.dgates_stride = results.gates.stride(1);
  for (int64_t s = steps; s-- > 0;) {
    const int64_t time = in.reverse ? steps - 1 - s : s;
    step.h_before = s == 0 ? data_of<T>(in.h) : data_of<T>(states.h) + (s - 1) * states.h.stride(0);
    step.h = data_of<T>(states.h) + s * states.h.stride(0);
    if (in.c.defined()) {
      step.c_before =
          s == 0 ? data_of<T>(in.c) : data_of<T>(states.c) + (s - 1) * states.c.stride(0);
      step.c = data_of<T>(states.c) + s * states.c.stride(0);
      step.dc_result = data_of<T>(dc_results) + s * dc_results.stride(0);
      step.dc = data_of<T>(out.c);
    }
    if (states.gates.defined()) step.gates = data_of<T>(states.gates) + s * states.gates.stride(0);
    if (results.gates.defined()) {
      step.dgates = data_of<T>(results.gates) + s * results.gates.stride(0);
    }
    if (in.mask.defined()) step.mask = data_of<bool>(in.mask) + time * in.mask.stride(1);
    step.dh = data_of<T>(dh);
    step.dh_result = data_of<T>(dh_results) + s * dh_results.stride(0);
    step.dx = data_of<T>(out.x) + time * out.x.stride(1);
    step.dproduct = data_of<T>(dproduct) + time * dproduct.stride(1);
    step.dh_before = data_of<T>(dh_before);
    run_step_rows<StepGradientRows<T>>(step, rows);
    at::addmm_out(dh, dh_before, dproduct.select(1, time), turned);
  }
  out.h = dh;
  // One product for all steps, in the order of dproduct.
  const at::Tensor before = at::empty({rows, steps, units}, in.x.options());
  const int64_t first = in.reverse ? steps - 1 : 0;
  before.select(1, first).copy_(in.h);
  if (steps > 1) {
    const at::Tensor earlier = states.h.narrow(0, 0, steps - 1).transpose(0, 1);
    const at::Tensor later = before.narrow(1, in.reverse ? 0 : 1, steps - 1);
    later.copy_(in.reverse ? earlier.flip(1) : earlier);
  }
  const at::Tensor all = dproduct.view({rows * steps, -1});
  out.kernel = at::mm(before.view({rows * steps, units}).t(), all);
  if (in.bias.defined()) out.bias = all.sum(0);
  return out;
}

}  // namespace

at::Tensor recurrence_block(const at::Tensor& block) {
  const bool floating = at::isFloatingType(block.scalar_type());
  const at::ScalarType dtype = floating ? at::toOpMathType(block.scalar_type()) : at::kBool;
  return block.to(at::TensorOptions().device(at::kCPU).dtype(dtype)).contiguous();
}

RecurrentStates run_recurrence(const Recurrence& in) {
  check_sizes(in);
  const int64_t rows = in.x.size(0), steps = in.x.size(1), units = in.h.size(1);
  RecurrentStates out;
  out.h = at::empty({steps, rows, units}, in.x.options());
  if (in.kind == RecurrentKind::lstm) out.c = at::empty_like(out.h);
  const int64_t saved = in.keeps_gates ? saved_gates_of(in.kind) : 0;
  if (saved > 0) out.gates = at::empty({steps, rows, saved * units}, in.x.options());
  if (in.x.scalar_type() == at::kDouble) {
    run_rows<double>(in, out);
  } else {
    run_rows<float>(in, out);
  }
  return out;
}

RecurrentGradients recurrence_gradients(const Recurrence& in, const RecurrentStates& states,
                                        const RecurrentStates& results) {
  check_sizes(in);
  check_sizes(in, states);
  check_sizes(in, results);
  if (in.x.scalar_type() == at::kDouble) return gradients_of_steps<double>(in, states, results);
  return gradients_of_steps<float>(in, states, results);
}

}  // namespace tessera::detail
