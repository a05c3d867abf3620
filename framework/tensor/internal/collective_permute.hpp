#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>

namespace tessera::detail {

/// Shape and dtype of a tensor that travels with others.
struct PackedPart {
  Shape shape;
  at::ScalarType dtype = at::kFloat;
};

/// Bytes that hold such tensors one behind the other, each aligned.
int64_t packed_bytes(const std::vector<PackedPart>& parts);
/// Tensors as one of bytes, so that they travel together.
at::Tensor packed(const std::vector<at::Tensor>& tensors);
/// Views of what packed() made of such tensors.
std::vector<at::Tensor> unpacked(const at::Tensor& bytes, const std::vector<PackedPart>& parts);

/// The members along some mesh dimensions and the blocks of theirs that are here. What a member
/// holds goes to another one as a whole (XLA's collective-permute, ppermute in JAX), in bytes.
class PermuteGroup {
 public:
  /// `places` are, of each block of this process, its group along every mesh dimension, of which
  /// there are `groups`. `shape` and `dtype` are of what all of this is done for.
  PermuteGroup(const Mesh& mesh, const std::vector<int>& dims, const Groups& groups,
               const std::vector<std::vector<int64_t>>& places, const Shape& shape,
               at::ScalarType dtype);

  int64_t size() const { return size_; }
  /// The member that a block belongs to.
  int64_t member(size_t block) const { return members_[block]; }

  /// What is under way.
  class Transfer {
   public:
    /// For each block what it was sent.
    std::vector<at::Tensor> wait();

   private:
    friend class PermuteGroup;
    using Matrix = std::vector<std::vector<at::Tensor>>;
    struct Row {
      std::vector<size_t> blocks;
      std::vector<size_t> from;  ///< member that each of the blocks receives from
      std::vector<bool> shares;  ///< whether it then has the sender's memory
      Matrix send, recv;
      WorkPtr work;
    };
    std::vector<at::Tensor> tensors_;
    std::vector<std::unique_ptr<Row>> rows_;  ///< where engines write is not moved
  };

  /// Begins to give member m what the blocks of member `from[m]` hold, a permutation: `tensors` and
  /// the bytes that it receives for each block here. Collective: called without blocks, too. What
  /// a member has from itself stays where it is.
  Transfer start(const std::vector<int64_t>& from, std::vector<at::Tensor> tensors,
                 const std::vector<int64_t>& bytes) const;

 private:
  void announce() const;

  const Mesh& mesh_;
  std::vector<int> dims_;
  const Groups& groups_;
  const Shape& shape_;
  at::ScalarType dtype_;
  int64_t size_ = 1;
  std::vector<int64_t> members_;
  std::vector<std::vector<size_t>> rows_;  ///< blocks that differ along `dims` alone, by member
};

/// Adds what such a transfer is to this thread's log: bytes that a device receives, if any.
void log_permute(const Mesh& mesh, const std::vector<int>& dims, double bytes);

}  // namespace tessera::detail
