#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>

namespace tessera::detail {

/// Shape and dtype of a tensor packed into a message.
struct PackedSpec {
  Shape shape;
  at::ScalarType dtype = at::kFloat;
};

/// Returns the bytes of such tensors packed one after the other, each aligned.
int64_t packed_bytes(const std::vector<PackedSpec>& specs);
/// Packs tensors into one tensor of bytes, to be sent as one message.
at::Tensor packed(const std::vector<at::Tensor>& tensors);
/// Returns the tensors that packed() packed, as views.
std::vector<at::Tensor> unpacked(const at::Tensor& bytes, const std::vector<PackedSpec>& specs);

/// A group of members along some mesh dimensions, with their blocks in this process. Each member
/// sends all that it holds to one other member (XLA's collective-permute, JAX' ppermute), as bytes.
class PermuteGroup {
 public:
  /// `block_groups`: for each block of this process, its group index along every mesh dimension;
  /// `groups`: the number of groups along each. `shape` and `dtype`: the tensor to be permuted.
  PermuteGroup(const Mesh& mesh, const std::vector<int>& dims, const Groups& groups,
               const std::vector<std::vector<int64_t>>& block_groups, const Shape& shape,
               at::ScalarType dtype);

  int64_t size() const { return size_; }
  /// Returns the member that a block belongs to.
  int64_t member(size_t block) const { return members_[block]; }

  /// A permute in flight.
  class Transfer {
   public:
    /// Waits and returns what each block received.
    std::vector<at::Tensor> wait();

   private:
    friend class PermuteGroup;
    using Matrix = std::vector<std::vector<at::Tensor>>;
    struct Row {
      std::vector<size_t> blocks;
      std::vector<size_t> from;   ///< member that each of the blocks receives from
      std::vector<bool> aliases;  ///< whether what it receives is the sender's own memory
      Matrix send, recv;
      WorkPtr work;
    };
    std::vector<at::Tensor> tensors_;
    std::vector<std::unique_ptr<Row>> rows_;  ///< pointers: engines write to stable addresses
  };

  /// Starts sending the tensors of member `from[m]`, a permutation, to member m. `tensors` and
  /// `bytes`: what each block here sends, and the bytes it receives. Collective: also called
  /// without blocks. A member that receives from itself keeps its tensor.
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

/// Logs such a transfer in this thread's CommLog: `bytes` received per device, unless 0.
void log_permute(const Mesh& mesh, const std::vector<int>& dims, double bytes);

}  // namespace tessera::detail
