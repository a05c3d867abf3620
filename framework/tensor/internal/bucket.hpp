#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/cpu/result_buffers.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/tensor/dtensor.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/memory_order.hpp>

namespace tessera::detail {

/// Whether all elements are finite: no infinity and no NaN.
bool all_finite(const at::Tensor& tensor);

/// Partial sums whose reductions run as one, while other work does; blocks and bits are those of
/// relayout_to() their targets. Which values fit together depends only on shapes and layouts;
/// these, and the order of calls, are the same on every process. Adds nothing to a CommLog.
class ReductionBucket {
 public:
  ReductionBucket() = default;
  virtual ~ReductionBucket() = default;
  ReductionBucket(const ReductionBucket&) = delete;
  ReductionBucket& operator=(const ReductionBucket&) = delete;

  /// Whether the bucket may reduce the value to the layout of `target`, with those added before.
  virtual bool fits(const DTensor& value, const ShardingPtr& target) const = 0;
  /// Keeps the value, which must fit, until finish(). `order` is the memory order of its sum, the
  /// same on every process. Returns the comm log's entry of the value's reduction by itself.
  virtual CommEntry add(const DTensor& value, const ShardingPtr& target,
                        const MemoryOrder& order) = 0;
  const std::vector<DTensor>& values() const { return values_; }
  /// Returns the bytes of each device's partial sums, in the dtype in which they are reduced.
  double bytes() const { return bytes_; }
  /// Returns what start() and finish() do to the memory of a device that is alone in its process.
  virtual PlannedReductions planned_memory() const = 0;

  /// Starts the reduction. Collective.
  virtual void start() = 0;
  /// Whether wait() would not block.
  virtual bool done() const = 0;
  /// Blocks until the reduction is done. Throws CommError.
  virtual void wait() = 0;
  /// Waits, reduces every value in all its handles and empties the bucket.
  virtual void finish() = 0;

  /// Whether the values between start() and finish() are to be checked for infinities and NaN, by
  /// the following.
  virtual bool is_checked() const { return false; }
  /// Returns this process's partial sums, each with the index of its value.
  virtual std::vector<std::pair<size_t, at::Tensor>> addends() const { return {}; }
  /// Returns the index of the first value that is infinite or NaN in this process, if any; CPUs
  /// only.
  virtual std::optional<size_t> find_non_finite() const { return std::nullopt; }

 protected:
  std::vector<DTensor> values_;
  double bytes_ = 0;
};

/// Resolves several partial sums by one all-reduce per group. Values fit together if they have the
/// same dtype, pending dimensions and block structure.
class Bucket final : public ReductionBucket {
 public:
  explicit Bucket(ResultBuffers& buffers) : buffers_(&buffers) {}

  /// Whether the value is a partial sum over more than one device and fits the bucket's values.
  bool fits(const DTensor& value) const;
  /// Whether it is, and an all-reduce alone leads to the target's layout.
  bool fits(const DTensor& value, const ShardingPtr& target) const override;
  void add(const DTensor& value, const MemoryOrder& order = {});
  CommEntry add(const DTensor& value, const ShardingPtr& target, const MemoryOrder& order) override;
  /// Until finish() there are the values, their flat copy and its sum; then views of the sum.
  PlannedReductions planned_memory() const override;

  /// Reduces this process's partial sums and starts the all-reduce across processes.
  void start() override;
  bool done() const override;
  void wait() override;
  void finish() override;
  bool is_checked() const override { return true; }
  std::vector<std::pair<size_t, at::Tensor>> addends() const override;
  /// Free if all are finite: start() sums the bucket's memory once.
  std::optional<size_t> find_non_finite() const override;

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
    /// This process's partial sums, reduced. In tree order, one for each subtree, where it begins
    /// in the list of members; the others are undefined.
    std::vector<at::Tensor> addends = {};
    at::Tensor check = {};  ///< on CPUs: their sum, not finite if any of them is not
    at::Tensor result = {};
    WorkPtr work = {};
    int64_t offset = 0;  ///< elements of the result already handed out
  };
  using Coordinates = std::vector<int64_t>;

  static Key key_of(const DTensor& value);
  Coordinates coordinates_of(const BlockInfo& block) const;
  void find_members();
  void announce_collective() const;
  void fill(Flat& flat, const Group& group) const;
  at::Tensor filled(const Flat& flat, const Group& group, Interval positions) const;
  DTensor resolved(const DTensor& split, const MemoryOrder& order);

  ResultBuffers* buffers_;
  Key key_;
  std::vector<DTensor> split_;  ///< the values in the key's blocks
  std::vector<MemoryOrder> orders_;
  std::map<Coordinates, Flat> flats_;
};

}  // namespace tessera::detail
