#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <c10/core/Allocator.h>

#include <tessera/framework/tensor/device_memory.hpp>

namespace tessera::detail {

/// One contiguous allocation of host memory that several plans use in turn.
class Arena;
std::shared_ptr<Arena> make_arena();

/// Static memory plan of an instruction sequence that runs repeatedly. The first run measures each
/// tensor's lifetime in instructions; tensors whose lifetimes do not overlap then share addresses
/// in one arena. So a step allocates nothing and touches the same pages each time. A request is
/// identified by its instruction, loop over blocks, block and its number there. Tensors that
/// outlive their run, and requests that were not measured, use the usual allocator, as does a
/// request whose planned addresses are still in use.
///
/// It plans host memory only: GPUs have a caching allocator.
class MemoryPlanner {
 public:
  explicit MemoryPlanner(std::shared_ptr<Arena> arena);
  ~MemoryPlanner();
  MemoryPlanner(const MemoryPlanner&) = delete;
  MemoryPlanner& operator=(const MemoryPlanner&) = delete;

  /// A run of the instructions in this thread and in the threads that it hands blocks to.
  class Run {
   public:
    explicit Run(MemoryPlanner& memory);
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    /// Attributes the requests that follow to this instruction.
    void at(int64_t instruction);
    /// Marks the last instruction as done: a measured run may be planned.
    void complete() { complete_ = true; }

   private:
    MemoryPlanner& memory_;
    bool complete_ = false;
  };

  using Stats = StepMemory;
  Stats stats() const;

  /// The run, loop over blocks and block that a thread works for. Used by execution.hpp.
  class Blocks {
   public:
    /// Is constructed by the thread that hands out blocks, before it does. Nested loops over blocks
    /// use the usual allocator, since several threads may run them at once.
    Blocks();
    /// Is constructed by each thread that works on some of the blocks.
    class Worker {
     public:
      explicit Worker(const Blocks& blocks);
      ~Worker() { cursor() = previous_; }
      Worker(const Worker&) = delete;
      Worker& operator=(const Worker&) = delete;
      void at(int64_t block);

     private:
      struct Cursor {
        MemoryPlanner* memory = nullptr;
        uint64_t loop = 0, block = 0, requests = 0;
      };
      friend class MemoryPlanner;
      static Cursor& cursor();
      Cursor previous_;
    };

   private:
    MemoryPlanner* memory_;
    uint64_t loop_ = 0;
  };

  /// While alive, this thread works for no run: for memory that other runs do not need.
  class Pause {
   public:
    Pause() : previous_(cursor()) { cursor() = {}; }
    ~Pause() { cursor() = previous_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Blocks::Worker::Cursor previous_;
  };

  /// Allocates memory for a tensor of this thread; by `usual` if the thread works for no run.
  static c10::DataPtr allocate(size_t bytes, c10::Allocator& usual);

 private:
  using Cursor = Blocks::Worker::Cursor;
  struct Measured;
  struct PlannedBlock;
  struct Plan;
  static Cursor& cursor() { return Blocks::Worker::cursor(); }
  void begin();
  void end(bool complete);
  c10::DataPtr measure(size_t bytes, uint64_t request, c10::Allocator& usual);
  PlannedBlock* find(size_t bytes, uint64_t request);

  std::shared_ptr<Arena> arena_;
  std::shared_ptr<Measured> measured_;
  std::shared_ptr<Plan> plan_;
  int64_t now_ = 0;
  uint64_t loops_ = 0;   ///< loops of this instruction so far
  bool usable_ = false;  ///< whether the arena is free for this run
  std::atomic<int64_t> hits_ = 0, misses_ = 0;
};

}  // namespace tessera::detail
