#pragma once

#include <vector>

#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/propagate.hpp>
#include <tessera/framework/tensor/internal/halo_exchange.hpp>

namespace tessera::detail {

/// The plan of one operation on inputs of given shardings: the layouts, then the blocks that each
/// local point of the operation's grid reads and writes.
class OpPlan {
 public:
  /// Infers the outputs and propagates layouts. Throws the operation's errors, or MeshError.
  OpPlan(const OpInfo& info, const void* op, std::vector<ShardingPtr> in, uint32_t parameters);

  const Propagation& propagation() const { return propagation_; }
  /// Returns the shardings of the inputs, before they are resharded.
  const std::vector<ShardingPtr>& inputs() const { return in_; }
  const std::shared_ptr<const void>& op() const { return op_; }
  bool matches(const OpInfo& info, const void* op, std::span<const DTensor> in,
               uint32_t parameters) const;

  /// Runs the operation on values of the planned shardings.
  std::vector<DTensor> run(std::span<const DTensor> in);

 private:
  /// The block of one input that a point reads, and how it is sliced for forward().
  struct Operand {
    int block = 0;
    bool absent = false;                               ///< a partial sum that another point uses
    std::vector<std::pair<int64_t, Interval>> slices;  ///< axis, interval within the block
  };
  struct Point {
    std::vector<int64_t> grid_index;  ///< group along every mesh dimension
    std::vector<Operand> operands;
    std::vector<std::vector<Interval>> ranges;
    std::vector<std::vector<Interval>> out_ranges;
    std::vector<int> out_blocks;
    c10::Device device{c10::kCPU};
    bool empty = false;   ///< an output block has no elements
    bool absent = false;  ///< a reduced factor is empty here
  };
  struct Window {
    size_t input;
    AxisShards shards;
    std::vector<Interval> targets;
  };

  void prepare(std::vector<ShardingPtr> ready);
  void choose_groups();
  void plan_windows();
  void add_points();
  Point make_point(const std::vector<Interval>& coordinates) const;
  Operand make_operand(size_t input, const std::vector<Interval>& coordinates,
                       const std::vector<int64_t>& at, const std::vector<Interval>& needed) const;
  std::vector<Interval> needed_ranges(size_t input, const std::vector<Interval>& at) const;
  bool is_window(size_t input, size_t axis) const;
  bool is_replicated_window(size_t input, size_t axis) const;
  Interval reference(int factor, const std::vector<Interval>& coordinates) const;
  void run_point(const Point& point, const std::vector<Blocks>& in, std::vector<Blocks>& out) const;
  void run_all(const std::vector<Blocks>& in, std::vector<Blocks>& out) const;
  bool fill_if_empty(const Point& point, std::vector<Blocks>& out) const;
  bool gather_tensors(const Point& point, const std::vector<Blocks>& in, Tensors& tensors) const;
  at::Tensor identity(const Point& point, size_t output) const;

  const OpInfo& info_;
  std::shared_ptr<const void> op_;
  std::vector<ShardingPtr> in_;
  uint32_t parameters_;
  BlockPolicy policy_;
  Specs specs_;
  Specs out_specs_;
  Rule rule_;
  Propagation propagation_;

  bool prepared_ = false;
  bool parallel_ = false;
  std::vector<ShardingPtr> ready_;
  Groups groups_;
  std::vector<ShardingPtr> out_;
  std::vector<Window> windows_;
  std::vector<Point> points_;
  std::vector<c10::Device> devices_;  ///< the device of each point
};

}  // namespace tessera::detail
