#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/optimizer/internal/for_each_block.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera::detail {

/// Blocks of one device and dtype on which each function is one launch on a GPU. The functions have
/// the names and arguments of at::Tensor's.
class BlockList {
 public:
  explicit BlockList(std::vector<at::Tensor> blocks) : blocks_(std::move(blocks)) {}
  const std::vector<at::Tensor>& blocks() const { return blocks_; }

  const BlockList& add_(double number) const {
    at::_foreach_add_(blocks_, number);
    return *this;
  }
  const BlockList& add_(const BlockList& other, double alpha = 1) const {
    at::_foreach_add_(blocks_, other.blocks_, alpha);
    return *this;
  }
  const BlockList& sub_(const BlockList& other, double alpha = 1) const {
    at::_foreach_sub_(blocks_, other.blocks_, alpha);
    return *this;
  }
  const BlockList& mul_(double number) const {
    at::_foreach_mul_(blocks_, number);
    return *this;
  }
  const BlockList& mul_(const BlockList& other) const {
    at::_foreach_mul_(blocks_, other.blocks_);
    return *this;
  }
  const BlockList& div_(double number) const {
    at::_foreach_div_(blocks_, number);
    return *this;
  }
  const BlockList& div_(const BlockList& other) const {
    at::_foreach_div_(blocks_, other.blocks_);
    return *this;
  }
  const BlockList& addcmul_(const BlockList& a, const BlockList& b, double value = 1) const {
    at::_foreach_addcmul_(blocks_, a.blocks_, b.blocks_, value);
    return *this;
  }
  const BlockList& addcdiv_(const BlockList& a, const BlockList& b, double value = 1) const {
    at::_foreach_addcdiv_(blocks_, a.blocks_, b.blocks_, value);
    return *this;
  }
  const BlockList& lerp_(const BlockList& end, double weight) const {
    at::_foreach_lerp_(blocks_, end.blocks_, weight);
    return *this;
  }
  const BlockList& clamp_min_(const BlockList& min) const {
    at::_foreach_clamp_min_(blocks_, min.blocks_);
    return *this;
  }
  const BlockList& sqrt_() const {
    at::_foreach_sqrt_(blocks_);
    return *this;
  }
  const BlockList& sign_() const {
    at::_foreach_sign_(blocks_);
    return *this;
  }
  const BlockList& copy_(const BlockList& from) const {
    at::_foreach_copy_(blocks_, from.blocks_);
    return *this;
  }

  BlockList add(const BlockList& other, double alpha) const {
    return BlockList(at::_foreach_add(blocks_, other.blocks_, alpha));
  }
  BlockList abs() const { return BlockList(at::_foreach_abs(blocks_)); }
  BlockList sqrt() const { return BlockList(at::_foreach_sqrt(blocks_)); }
  BlockList pow(double exponent) const { return BlockList(at::_foreach_pow(blocks_, exponent)); }
  BlockList clamp(double min, double max) const {
    std::vector<at::Tensor> result = at::_foreach_clamp_min(blocks_, min);
    at::_foreach_clamp_max_(result, max);
    return BlockList(std::move(result));
  }

  friend BlockList operator+(const BlockList& a, double b) {
    return BlockList(at::_foreach_add(a.blocks_, b));
  }
  friend BlockList operator*(const BlockList& a, double b) {
    return BlockList(at::_foreach_mul(a.blocks_, b));
  }
  friend BlockList operator/(const BlockList& a, double b) {
    return BlockList(at::_foreach_div(a.blocks_, b));
  }
  friend BlockList operator-(const BlockList& a, const BlockList& b) {
    return BlockList(at::_foreach_sub(a.blocks_, b.blocks_));
  }
  friend BlockList operator/(const BlockList& a, const BlockList& b) {
    return BlockList(at::_foreach_div(a.blocks_, b.blocks_));
  }

 private:
  std::vector<at::Tensor> blocks_;
};

/// UpdateArgs of several blocks of one device and dtype.
struct ListUpdate {
  BlockList weight, gradient;
  std::vector<BlockList> slots;
  double learning_rate = 0;
  int64_t step = 1;
};

inline ListUpdate list_update(const std::vector<UpdateArgs>& blocks,
                              const std::vector<size_t>& indices) {
  const auto list = [&](const auto& field) {
    std::vector<at::Tensor> tensors;
    for (size_t index : indices) tensors.push_back(field(blocks[index]));
    return BlockList(std::move(tensors));
  };
  const UpdateArgs& first = blocks[indices[0]];
  ListUpdate update{list([](const UpdateArgs& args) { return args.weight; }),
                    list([](const UpdateArgs& args) { return args.gradient; }),
                    {},
                    first.learning_rate,
                    first.step};
  for (size_t s = 0; s < first.slots.size(); ++s) {
    update.slots.push_back(list([s](const UpdateArgs& args) { return args.slots[s]; }));
  }
  return update;
}

/// Base of optimizers whose update is written once, as the template `rule(args)`: for one CPU block
/// (UpdateArgs) and for all blocks of a GPU at once (ListUpdate).
template <class Derived>
class ListOptimizer : public Optimizer {
 protected:
  using Optimizer::Optimizer;

  void update(const UpdateArgs& args) const override { derived().rule(args); }

  void update_all(const std::vector<UpdateArgs>& blocks) const override {
    std::vector<at::Tensor> weights;
    for (const UpdateArgs& args : blocks) weights.push_back(args.weight);
    for_each_list(
        weights,
        [&](size_t b) {
          const ProfileSpan span(SpanKind::aten, "update");
          update(blocks[b]);
        },
        [&](const std::vector<size_t>& indices) { derived().rule(list_update(blocks, indices)); });
  }

 private:
  const Derived& derived() const { return static_cast<const Derived&>(*this); }
};

}  // namespace tessera::detail
