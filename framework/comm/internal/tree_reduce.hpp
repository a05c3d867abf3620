#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/comm/internal/communicator.hpp>

/// Reductions in an order that does not depend on which process holds which member: the balanced
/// binary tree over the positions of a group's members. A node has 2^k positions, from a multiple
/// of 2^k on, fewer at the end of the group. Positions without an input are left out, as if the
/// input were the identity.
namespace tessera::detail {

/// A member's input, or the reduction of the subtree whose positions begin here.
struct TreeAddend {
  int64_t position = 0;
  at::Tensor value = {};
  bool writable = false;  ///< whether an intermediate result may replace the value
};

/// Reduces values of one shape and dtype, at least one, in ascending order of their positions; each
/// pair on the device of its first operand. The result is `out`, if that is given; else new memory,
/// or the only value. Which of the values are reductions of subtrees does not change a bit.
at::Tensor tree_reduce(Reduce kind, std::vector<TreeAddend> addends, at::Tensor out = {});

/// Returns where the largest subtrees begin whose members are all held by `rank`, ascending.
std::vector<int64_t> subtree_positions(const Group& group, int rank);

/// Returns the reductions of this process's subtrees, in the order of subtree_positions(): all that
/// other processes need of it. `inputs` are those of Communicator::all_reduce(); a subtree without
/// any is the identity.
std::vector<at::Tensor> subtree_reductions(const Group& group, Reduce kind,
                                           const std::vector<at::Tensor>& inputs);

/// Reduces the inputs of a group inside a process, in the group's order.
at::Tensor reduce_inputs(const Group& group, Reduce kind, const std::vector<at::Tensor>& inputs);

/// Returns a tensor that changes no bit of what it is added to in a tree. For sums of floating
/// dtypes that is -0.0, since 0.0 would change -0.0.
at::Tensor tree_identity(Reduce kind, at::IntArrayRef shape, at::TensorOptions options);

/// Returns the first input that is defined.
const at::Tensor& first_defined(const std::vector<at::Tensor>& inputs);

}  // namespace tessera::detail
