#include <tessera/framework/tensor/internal/memory_planner.hpp>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

#include <malloc.h>

#include <c10/core/CPUAllocator.h>

#include <tessera/framework/tensor/internal/host_allocator.hpp>

namespace tessera::detail {
namespace {

/// ATen's alignment in bytes.
constexpr size_t alignment = 64;

size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// Whether runs are planned. $TESSERA_STEP_MEMORY=off makes them use the usual allocator, for tools
/// that look for memory errors.
bool planning_enabled() {
  static const char* const text = std::getenv("TESSERA_STEP_MEMORY");
  static const bool off = text && std::string_view(text) == "off";
  return !off;
}

/// Returns to the system what the C library keeps for later: an arena takes the place of what the
/// steps before allocated and freed.
void return_free_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace

class Arena {
 public:
  /// Whether no planned block of it is in use, so that another plan may use it.
  bool idle() const { return live_.load(std::memory_order_acquire) == 0; }
  /// Grows to at least that many bytes. To be called only while idle.
  void reserve(size_t bytes) {
    if (bytes <= size_) return;
    memory_ = {};
    size_ = 0;
    return_free_memory();
    memory_ = c10::GetDefaultCPUAllocator()->allocate(bytes);
    size_ = bytes;
  }
  char* start() const { return static_cast<char*>(memory_.get()); }
  void acquire() { live_.fetch_add(1, std::memory_order_relaxed); }
  void release() { live_.fetch_sub(1, std::memory_order_release); }

 private:
  c10::DataPtr memory_;
  size_t size_ = 0;
  std::atomic<int64_t> live_ = 0;
};

std::shared_ptr<Arena> make_arena() { return std::make_shared<Arena>(); }

/// The requests of the measured first run.
struct MemoryPlanner::Measured {
  struct Request {
    size_t bytes = 0;
    uint64_t number = 0;  ///< identifies it in its instruction: loop, block, number there
    int64_t from = 0;
    int64_t to = -1;  ///< the instruction during which it was freed; -1: not in this run
  };
  std::mutex mutex;
  std::vector<Request> requests;
  int64_t now = 0;
  bool over = false;
};

namespace {

/// Memory allocated in the measured run; records when it is freed.
template <class Measured>
struct MeasuredAllocation {
  std::shared_ptr<Measured> measured;
  size_t request;
  c10::DataPtr data;

  static void remove(void* context) {
    const std::unique_ptr<MeasuredAllocation> allocation(static_cast<MeasuredAllocation*>(context));
    Measured& run = *allocation->measured;
    const std::lock_guard lock(run.mutex);
    if (!run.over) run.requests[allocation->request].to = run.now;
  }
};

}  // namespace

/// A planned block of the arena.
struct MemoryPlanner::PlannedBlock {
  size_t bytes = 0;
  uint64_t number = 0;
  int64_t from = 0, to = 0;
  size_t offset = 0;
  std::vector<const PlannedBlock*> overlapping = {};  ///< blocks that overlap its addresses
  std::atomic<bool> used = false;
  /// Set while used, since a tensor may outlive the plan.
  std::shared_ptr<Plan> plan = {};
  std::shared_ptr<Arena> arena = {};

  static void give_back(void* context) {
    auto* const planned = static_cast<PlannedBlock*>(context);
    const std::shared_ptr<Plan> keep_alive = std::move(planned->plan);
    const std::shared_ptr<Arena> arena = std::move(planned->arena);
    planned->used.store(false, std::memory_order_release);
    arena->release();
  }

  bool overlaps_in_time(const PlannedBlock& other) const {
    return from <= other.to && other.from <= to;
  }
  bool overlaps_in_memory(const PlannedBlock& other) const {
    return offset < other.offset + aligned(other.bytes) && other.offset < offset + aligned(bytes);
  }
};

struct MemoryPlanner::Plan {
  explicit Plan(const std::vector<Measured::Request>& requests);

  /// Returns the lowest offset that avoids all placed blocks with an overlapping lifetime (first
  /// fit).
  static size_t place(const PlannedBlock& planned, std::vector<const PlannedBlock*>& placed);

  std::vector<std::unique_ptr<PlannedBlock>> blocks;
  std::vector<std::vector<PlannedBlock*>> at;  ///< by instruction, ordered by number
  size_t bytes = 0, asked = 0;
};

MemoryPlanner::Plan::Plan(const std::vector<Measured::Request>& requests) {
  for (const Measured::Request& request : requests) {
    if (request.to < 0) continue;
    auto planned = std::make_unique<PlannedBlock>();
    planned->bytes = request.bytes;
    planned->number = request.number;
    planned->from = request.from;
    planned->to = request.to;
    at.resize(std::max(at.size(), static_cast<size_t>(request.from) + 1));
    at[static_cast<size_t>(request.from)].push_back(planned.get());
    asked += aligned(request.bytes);
    blocks.push_back(std::move(planned));
  }
  for (std::vector<PlannedBlock*>& list : at) {
    std::sort(list.begin(), list.end(),
              [](const PlannedBlock* a, const PlannedBlock* b) { return a->number < b->number; });
  }
  std::vector<PlannedBlock*> order;
  for (const auto& planned : blocks) order.push_back(planned.get());
  std::stable_sort(order.begin(), order.end(), [](const PlannedBlock* a, const PlannedBlock* b) {
    return a->bytes > b->bytes;
  });
  std::vector<const PlannedBlock*> placed;
  for (PlannedBlock* planned : order) {
    planned->offset = place(*planned, placed);
    bytes = std::max(bytes, planned->offset + aligned(planned->bytes));
  }
  for (PlannedBlock* a : order) {
    for (const PlannedBlock* b : order) {
      if (a != b && a->overlaps_in_memory(*b)) a->overlapping.push_back(b);
    }
  }
}

/// Keeps `placed` sorted by offset.
size_t MemoryPlanner::Plan::place(const PlannedBlock& planned,
                                  std::vector<const PlannedBlock*>& placed) {
  size_t offset = 0;
  for (const PlannedBlock* other : placed) {
    if (!planned.overlaps_in_time(*other)) continue;
    if (offset + aligned(planned.bytes) <= other->offset) break;
    offset = std::max(offset, other->offset + aligned(other->bytes));
  }
  const auto next = std::find_if(placed.begin(), placed.end(),
                                 [&](const PlannedBlock* other) { return other->offset > offset; });
  placed.insert(next, &planned);
  return offset;
}

MemoryPlanner::MemoryPlanner(std::shared_ptr<Arena> arena) : arena_(std::move(arena)) {}
MemoryPlanner::~MemoryPlanner() = default;

MemoryPlanner::Blocks::Worker::Cursor& MemoryPlanner::Blocks::Worker::cursor() {
  thread_local Cursor cursor;
  return cursor;
}

MemoryPlanner::Blocks::Blocks() : memory_(cursor().loop ? nullptr : cursor().memory) {
  if (memory_) loop_ = ++memory_->loops_;
}

MemoryPlanner::Blocks::Worker::Worker(const Blocks& blocks) : previous_(cursor()) {
  cursor() = {blocks.memory_, blocks.loop_, 0, 0};
}

void MemoryPlanner::Blocks::Worker::at(int64_t block) {
  cursor().block = static_cast<uint64_t>(block);
  cursor().requests = 0;
}

MemoryPlanner::Run::Run(MemoryPlanner& memory) : memory_(memory) {
  memory_.begin();
  if (planning_enabled()) cursor() = {&memory_, 0, 0, 0};
}

MemoryPlanner::Run::~Run() {
  cursor() = {};
  memory_.end(complete_);
}

void MemoryPlanner::Run::at(int64_t instruction) {
  memory_.now_ = instruction;
  memory_.loops_ = 0;
  cursor().requests = 0;
  if (!memory_.measured_) return;
  const std::lock_guard lock(memory_.measured_->mutex);
  memory_.measured_->now = instruction;
}

void MemoryPlanner::begin() {
  now_ = 0;
  if (!plan_) {
    measured_ = std::make_shared<Measured>();
    return;
  }
  usable_ = arena_->idle();
  if (usable_) arena_->reserve(plan_->bytes);
}

void MemoryPlanner::end(bool complete) {
  const std::shared_ptr<Measured> measured = std::move(measured_);
  if (!measured) return;
  const std::lock_guard lock(measured->mutex);
  measured->over = true;
  if (complete) plan_ = std::make_shared<Plan>(measured->requests);
}

c10::DataPtr MemoryPlanner::measure(size_t bytes, uint64_t request, c10::Allocator& usual) {
  auto allocation = std::make_unique<MeasuredAllocation<Measured>>();
  allocation->data = usual.allocate(bytes);
  allocation->measured = measured_;
  void* const data = allocation->data.get();
  {
    const std::lock_guard lock(measured_->mutex);
    allocation->request = measured_->requests.size();
    measured_->requests.push_back({bytes, request, now_});
  }
  return watched_memory(data, std::move(allocation), &MeasuredAllocation<Measured>::remove);
}

/// Takes and returns the block planned for the request; null if there is none, or if it or an
/// overlapping one is in use.
MemoryPlanner::PlannedBlock* MemoryPlanner::find(size_t bytes, uint64_t request) {
  if (!usable_ || static_cast<size_t>(now_) >= plan_->at.size()) return nullptr;
  const std::vector<PlannedBlock*>& list = plan_->at[static_cast<size_t>(now_)];
  const auto it = std::lower_bound(
      list.begin(), list.end(), request,
      [](const PlannedBlock* planned, uint64_t number) { return planned->number < number; });
  if (it == list.end() || (*it)->number != request || (*it)->bytes != bytes) {
    return nullptr;
  }
  const auto used = [](const PlannedBlock* planned) {
    return planned->used.load(std::memory_order_acquire);
  };
  const std::vector<const PlannedBlock*>& overlapping = (*it)->overlapping;
  if (std::any_of(overlapping.begin(), overlapping.end(), used)) return nullptr;
  return (*it)->used.exchange(true, std::memory_order_acq_rel) ? nullptr : *it;
}

c10::DataPtr MemoryPlanner::allocate(size_t bytes, c10::Allocator& usual) {
  Cursor& here = cursor();
  MemoryPlanner* const own = here.memory;
  if (!own) return usual.allocate(bytes);
  const uint64_t request = here.loop << 48 | here.block << 24 | here.requests++;
  if (own->measured_) return own->measure(bytes, request, usual);
  PlannedBlock* const planned = own->find(bytes, request);
  if (!planned) {
    own->misses_.fetch_add(1, std::memory_order_relaxed);
    return usual.allocate(bytes);
  }
  own->hits_.fetch_add(1, std::memory_order_relaxed);
  planned->plan = own->plan_;
  planned->arena = own->arena_;
  planned->arena->acquire();
  void* const data = planned->arena->start() + planned->offset;
  try {
    return watched_memory(data, static_cast<void*>(planned), &PlannedBlock::give_back);
  } catch (...) {
    PlannedBlock::give_back(planned);
    throw;
  }
}

MemoryPlanner::Stats MemoryPlanner::stats() const {
  if (!plan_) return {};
  return {static_cast<int64_t>(plan_->bytes), static_cast<int64_t>(plan_->asked), hits_, misses_};
}

}  // namespace tessera::detail
