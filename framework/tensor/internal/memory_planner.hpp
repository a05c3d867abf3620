#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <c10/core/Allocator.h>

namespace tessera::detail {

/// One piece of host memory that the steps of several plans take turns in.
class Arena;
std::shared_ptr<Arena> make_step_buffer();

/// The memory of a sequence of instructions that runs again and again, as one piece: the first run
/// is measured, which tensor lives from which instruction to which; tensors that do not live at
/// the same time then share addresses. So a step asks nobody for memory and touches the same pages
/// each time. A request is known by its place: the instruction, the loop over blocks, the block and
/// the requests there before it. What outlives the run it was made in, and what was not there when
/// it was measured, gets memory as usual; before an address is used it is checked that nobody holds
/// it.
///
/// It plans host memory only: GPUs have a caching allocator.
class MemoryPlanner {
 public:
  explicit MemoryPlanner(std::shared_ptr<Arena> buffer);
  ~MemoryPlanner();
  MemoryPlanner(const MemoryPlanner&) = delete;
  MemoryPlanner& operator=(const MemoryPlanner&) = delete;

  /// A run of the instructions in this thread; blocks that it hands to other threads belong to it.
  class Run {
   public:
    explicit Run(MemoryPlanner& memory);
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    /// What is asked for from now on is for this instruction.
    void at(int64_t instruction);
    /// The last instruction is done: what was measured may be planned.
    void complete() { complete_ = true; }

   private:
    MemoryPlanner& memory_;
    bool complete_ = false;
  };

  struct Stats {
    int64_t planned = 0;  ///< bytes that the plan needs
    int64_t asked = 0;    ///< bytes of all that is planned, one after the other
    int64_t hits = 0;     ///< times that memory was where it was planned
    int64_t misses = 0;   ///< times that it was not, of more than a few bytes
  };
  Stats stats() const;

  /// Which run a thread works for, on which block of which loop over blocks; for execution.hpp.
  class Blocks {
   public:
    /// Is made in the thread that hands blocks out, before it does. Blocks of a block, of which
    /// several threads may hand some out, get memory as usual.
    Blocks();
    /// Lives in a thread that works on some of the blocks.
    class Worker {
     public:
      explicit Worker(const Blocks& blocks);
      ~Worker() { cursor() = former_; }
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
      Cursor former_;
    };

   private:
    MemoryPlanner* memory_;
    uint64_t loop_ = 0;
  };

  /// Memory for a tensor of this thread, by the usual allocator if no run is its own.
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

  std::shared_ptr<Arena> buffer_;
  std::shared_ptr<Measured> measured_;
  std::shared_ptr<Plan> plan_;
  int64_t now_ = 0;
  uint64_t loops_ = 0;   ///< loops of this instruction so far
  bool usable_ = false;  ///< whether the buffer is free for this run
  std::atomic<int64_t> hits_ = 0, misses_ = 0;
};

}  // namespace tessera::detail
