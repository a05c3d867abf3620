#include "tests/support/oracle_local.hpp"

#include <tessera/framework/comm/internal/communicator.hpp>

#include <ATen/ATen.h>

#include <limits>

#include "tests/support/layouts.hpp"

namespace tessera::test {

using namespace detail;

namespace {

Shape extents(const Ranges& ranges) {
  Shape shape;
  for (Interval range : ranges) shape.push_back(range.size());
  return shape;
}

bool empty(const Ranges& ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [](Interval i) { return i.empty(); });
}

/// One block of one operation.
class LocalRun {
 public:
  LocalRun(const OpInfo& info, const void* op, const std::vector<at::Tensor>& full,
           const std::vector<Ranges>& in, const std::vector<Ranges>& out)
      : info_(info),
        op_(op),
        full_(full),
        in_(in),
        out_(out),
        specs_(specs_of(full)),
        rule_(info.rule(op, specs_)) {}

  Tensors run() {
    Tensors tensors;
    std::vector<Ranges> ranges;
    bool nothing = false;
    for (size_t i = 0; i < full_.size(); ++i) {
      at::Tensor tensor = full_[i];
      ranges.push_back(in_[i]);
      for (size_t a = 0; a < in_[i].size(); ++a) {
        if (is_window(i, a)) {
          ranges[i][a] = info_.window(op_, i, int64_t(a), driver(rule_.in[i][a]), specs_);
          tensor = windowed(tensor, int64_t(a), in_[i][a], ranges[i][a]);
        } else {
          nothing = nothing || in_[i][a].empty();
          tensor = tensor.narrow(int64_t(a), in_[i][a].lo, in_[i][a].size());
        }
      }
      tensors.push_back(tensor.clone());
    }
    if (nothing || empty(out_[0])) return identities();
    Tensors results =
        info_.forward(op_, LocalArgs({tensors.data(), tensors.size()}, ranges, out_, specs_));
    for (at::Tensor& result : results) {
      if (result.is_sparse()) result = result.to_dense();
    }
    return results;
  }

 private:
  bool is_window(size_t input, size_t axis) const {
    const int factor = rule_.in[input][axis];
    return info_.windowed && factor != Rule::none &&
           rule_.factors[size_t(factor)] == FactorKind::window;
  }

  /// Returns the interval of a window factor in this block: the output's, else the last input's.
  Interval driver(int factor) const {
    for (size_t a = 0; a < rule_.out[0].size(); ++a) {
      if (rule_.out[0][a] == factor) return out_[0][a];
    }
    for (size_t i = rule_.in.size(); i-- > 0;) {
      for (size_t a = 0; a < rule_.in[i].size(); ++a) {
        if (rule_.in[i][a] == factor) return in_[i][a];
      }
    }
    return {};
  }

  at::Tensor windowed(const at::Tensor& full, int64_t axis, Interval have, Interval want) const {
    Shape shape = full.sizes().vec();
    shape[size_t(axis)] = std::max<int64_t>(0, want.size());
    const at::Tensor out = at::full(shape, info_.fill(op_), full.options());
    const auto put = [&](Interval part, bool known) {
      const Interval common = intersect(part, want);
      if (common.empty()) return;
      const at::Tensor target = out.narrow(axis, common.lo - want.lo, common.size());
      if (known) {
        target.copy_(full.narrow(axis, common.lo, common.size()));
      } else if (at::isFloatingType(full.scalar_type())) {
        target.fill_(std::numeric_limits<double>::quiet_NaN());
      } else {
        target.copy_(reduce_identity(Reduce::max, target.sizes(), full.options()));
      }
    };
    put({0, have.lo}, false);
    put({have.hi, full.size(axis)}, false);
    put(have, true);
    return out;
  }

  Tensors identities() const {
    Tensors results;
    const Specs specs = info_.infer(op_, specs_);
    for (size_t o = 0; o < out_.size(); ++o) {
      results.push_back(reduce_identity(rule_.reduce, extents(out_[o]),
                                        at::TensorOptions().dtype(specs[o].dtype)));
    }
    return results;
  }

  const OpInfo& info_;
  const void* op_;
  const std::vector<at::Tensor>& full_;
  const std::vector<Ranges>& in_;
  const std::vector<Ranges>& out_;
  const Specs specs_;
  const Rule rule_;
};

}  // namespace

Ranges full_range(const Shape& shape) {
  Ranges ranges;
  for (int64_t extent : shape) ranges.push_back({0, extent});
  return ranges;
}

Specs specs_of(const std::vector<at::Tensor>& tensors) {
  Specs specs;
  for (const at::Tensor& t : tensors) specs.push_back({t.sizes().vec(), t.scalar_type()});
  return specs;
}

Tensors run_local(const OpInfo& info, const void* op, const std::vector<at::Tensor>& full,
                  const std::vector<Ranges>& in, const std::vector<Ranges>& out) {
  const c10::InferenceMode inference;
  return LocalRun(info, op, full, in, out).run();
}

}  // namespace tessera::test
