#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/tensor/dtensor.hpp>
#include <tessera/framework/tensor/internal/memory_order.hpp>

namespace tessera::detail {

/// Whether all elements are finite: no infinity and no NaN.
bool all_finite(const at::Tensor& tensor);

/// Flat tensors that are reused once nobody else holds them.
class BufferPool {
 public:
  at::Tensor take(int64_t numel, at::TensorOptions options);

 private:
  std::vector<at::Tensor> buffers_;
};

/// Resolves several partial sums of one mesh by one asynchronous all-reduce per group; blocks and
/// bits are those of relayout_value() to their resolved layouts. Values fit together if they have
/// the same dtype, pending dimensions and block structure; these, and the order of calls, are the
/// same on every process. Adds nothing to a CommLog.
class Bucket {
 public:
  explicit Bucket(BufferPool& pool) : pool_(&pool) {}

  /// Whether the value is a partial sum over more than one device and fits the bucket's values.
  bool fits(const DTensor& value) const;
  /// Keeps the value, which must fit, until finish(). `order` is the memory order of its sum, the
  /// same on every process.
  void add(const DTensor& value, const MemoryOrder& order = {});
  const std::vector<DTensor>& values() const { return values_; }
  /// Returns the bytes that each device all-reduces.
  double bytes() const { return bytes_; }

  /// Reduces this process's partial sums and starts the all-reduce across processes. Collective.
  void start();
  /// Whether wait() would not block.
  bool done() const;
  /// Blocks until the all-reduce is done. Throws CommError.
  void wait();
  /// Waits, resolves every value in all its handles and empties the bucket.
  void finish();
  /// Returns this process's partial sums, each with the index of its value. To be called between
  /// start() and finish().
  std::vector<std::pair<size_t, at::Tensor>> addends() const;
  /// Returns the index of the first value that is infinite or NaN in this process, if any. To be
  /// called between start() and finish(); CPUs only. Free if all are finite: start() sums the
  /// bucket's memory once.
  std::optional<size_t> find_non_finite() const;

 private:
  /// The properties that the values of one bucket share.
  struct Key {
    Mesh mesh;
    DimMask dims = 0;
    Reduce kind = Reduce::sum;
    at::ScalarType dtype = at::kFloat, reduce_dtype = at::kFloat;
    Groups groups;
    bool operator==(const Key&) const = default;
  };
  /// The values' blocks at one coordinate of the other dimensions, concatenated.
  struct Flat {
    std::vector<int> members = {};  ///< blocks, in their order along the pending dimensions
    at::Tensor addends = {};        ///< this process's partial sums, reduced
    at::Tensor check = {};          ///< on CPUs: their sum, not finite if any of them is not
    at::Tensor result = {};
    WorkPtr work = {};
    int64_t offset = 0;  ///< elements of the result already handed out
  };
  using Coordinates = std::vector<int64_t>;

  static Key key_of(const DTensor& value);
  Coordinates coordinates_of(const BlockInfo& block) const;
  void find_members();
  void announce_collective() const;
  void fill(Flat& flat) const;
  DTensor resolved(const DTensor& split, const MemoryOrder& order);

  BufferPool* pool_;
  Key key_;
  std::vector<DTensor> values_;
  std::vector<DTensor> split_;  ///< the values in the key's blocks
  std::vector<MemoryOrder> orders_;
  double bytes_ = 0;
  std::map<Coordinates, Flat> flats_;
};

}  // namespace tessera::detail
