#include <tessera/framework/tensor/internal/memory_planner.hpp>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

#include <c10/core/CPUAllocator.h>

#include <tessera/framework/tensor/internal/host_allocator.hpp>

namespace tessera::detail {
namespace {

/// What ATen aligns to.
constexpr size_t alignment = 64;

size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// $TESSERA_STEP_MEMORY=off: runs get memory as usual, for tools that look for errors in it.
bool wanted() {
  static const char* const text = std::getenv("TESSERA_STEP_MEMORY");
  static const bool off = text && std::string_view(text) == "off";
  return !off;
}

}  // namespace

class Arena {
 public:
  /// Whether nobody holds a part of it, so that it may be another plan's.
  bool idle() const { return live_.load(std::memory_order_acquire) == 0; }
  /// At least that many bytes; only while idle.
  void reserve(size_t bytes) {
    if (bytes <= size_) return;
    memory_ = {};
    size_ = 0;
    memory_ = c10::GetDefaultCPUAllocator()->allocate(bytes);
    size_ = bytes;
  }
  char* start() const { return static_cast<char*>(memory_.get()); }
  void take() { live_.fetch_add(1, std::memory_order_relaxed); }
  void give() { live_.fetch_sub(1, std::memory_order_release); }

 private:
  c10::DataPtr memory_;
  size_t size_ = 0;
  std::atomic<int64_t> live_ = 0;
};

std::shared_ptr<Arena> make_step_buffer() { return std::make_shared<Arena>(); }

/// What the first run asked for.
struct MemoryPlanner::Measured {
  struct Request {
    size_t bytes = 0;
    uint64_t number = 0;  ///< in its instruction
    int64_t from = 0;
    int64_t to = -1;  ///< the instruction during which it was given back; -1: not in this run
  };
  std::mutex mutex;
  std::vector<Request> requests;
  int64_t now = 0;
  bool over = false;
};

namespace {

/// Memory of the run that is measured; tells when it is given back.
template <class Measured>
struct Note {
  std::shared_ptr<Measured> measured;
  size_t request;
  c10::DataPtr data;

  static void remove(void* context) {
    const std::unique_ptr<Note> note(static_cast<Note*>(context));
    const std::lock_guard lock(note->measured->mutex);
    if (!note->measured->over) note->measured->requests[note->request].to = note->measured->now;
  }
};

}  // namespace

/// A planned place in the buffer.
struct MemoryPlanner::PlannedBlock {
  size_t bytes = 0;
  uint64_t number = 0;
  int64_t from = 0, to = 0;
  size_t offset = 0;
  std::vector<const PlannedBlock*> sharing = {};  ///< those that have some of its addresses
  std::atomic<bool> used = false;
  /// Held while used: a tensor may outlive the plan.
  std::shared_ptr<Plan> plan = {};
  std::shared_ptr<Arena> buffer = {};

  static void give_back(void* context) {
    auto* const chunk = static_cast<PlannedBlock*>(context);
    const std::shared_ptr<Plan> kept = std::move(chunk->plan);
    const std::shared_ptr<Arena> buffer = std::move(chunk->buffer);
    chunk->used.store(false, std::memory_order_release);
    buffer->give();
  }

  bool lives_with(const PlannedBlock& other) const { return from <= other.to && other.from <= to; }
  bool meets(const PlannedBlock& other) const {
    return offset < other.offset + aligned(other.bytes) && other.offset < offset + aligned(bytes);
  }
};

struct MemoryPlanner::Plan {
  explicit Plan(const std::vector<Measured::Request>& requests);

  /// At the lowest addresses that no chunk placed before it, living at the same time, has.
  static size_t place(const PlannedBlock& chunk, std::vector<const PlannedBlock*>& placed);

  std::vector<std::unique_ptr<PlannedBlock>> chunks;
  std::vector<std::vector<PlannedBlock*>> at;  ///< by instruction, in the order of their numbers
  size_t bytes = 0, asked = 0;
};

MemoryPlanner::Plan::Plan(const std::vector<Measured::Request>& requests) {
  for (const Measured::Request& request : requests) {
    if (request.to < 0) continue;
    auto chunk = std::make_unique<PlannedBlock>();
    chunk->bytes = request.bytes;
    chunk->number = request.number;
    chunk->from = request.from;
    chunk->to = request.to;
    at.resize(std::max(at.size(), static_cast<size_t>(request.from) + 1));
    at[static_cast<size_t>(request.from)].push_back(chunk.get());
    asked += aligned(request.bytes);
    chunks.push_back(std::move(chunk));
  }
  for (std::vector<PlannedBlock*>& list : at) {
    std::sort(list.begin(), list.end(),
              [](const PlannedBlock* a, const PlannedBlock* b) { return a->number < b->number; });
  }
  std::vector<PlannedBlock*> order;
  for (const auto& chunk : chunks) order.push_back(chunk.get());
  std::stable_sort(order.begin(), order.end(), [](const PlannedBlock* a, const PlannedBlock* b) {
    return a->bytes > b->bytes;
  });
  std::vector<const PlannedBlock*> placed;
  for (PlannedBlock* chunk : order) {
    chunk->offset = place(*chunk, placed);
    bytes = std::max(bytes, chunk->offset + aligned(chunk->bytes));
  }
  for (PlannedBlock* a : order) {
    for (const PlannedBlock* b : order) {
      if (a != b && a->meets(*b)) a->sharing.push_back(b);
    }
  }
}

/// `placed` is kept in the order of addresses.
size_t MemoryPlanner::Plan::place(const PlannedBlock& chunk,
                                  std::vector<const PlannedBlock*>& placed) {
  size_t offset = 0;
  for (const PlannedBlock* other : placed) {
    if (!chunk.lives_with(*other)) continue;
    if (offset + aligned(chunk.bytes) <= other->offset) break;
    offset = std::max(offset, other->offset + aligned(other->bytes));
  }
  const auto behind = std::find_if(placed.begin(), placed.end(), [&](const PlannedBlock* other) {
    return other->offset > offset;
  });
  placed.insert(behind, &chunk);
  return offset;
}

MemoryPlanner::MemoryPlanner(std::shared_ptr<Arena> buffer) : buffer_(std::move(buffer)) {}
MemoryPlanner::~MemoryPlanner() = default;

MemoryPlanner::Blocks::Worker::Cursor& MemoryPlanner::Blocks::Worker::cursor() {
  thread_local Cursor cursor;
  return cursor;
}

MemoryPlanner::Blocks::Blocks() : memory_(cursor().loop ? nullptr : cursor().memory) {
  if (memory_) loop_ = ++memory_->loops_;
}

MemoryPlanner::Blocks::Worker::Worker(const Blocks& blocks) : former_(cursor()) {
  cursor() = {blocks.memory_, blocks.loop_, 0, 0};
}

void MemoryPlanner::Blocks::Worker::at(int64_t block) {
  cursor().block = static_cast<uint64_t>(block);
  cursor().requests = 0;
}

MemoryPlanner::Run::Run(MemoryPlanner& memory) : memory_(memory) {
  memory_.begin();
  if (wanted()) cursor() = {&memory_, 0, 0, 0};
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
  usable_ = buffer_->idle();
  if (usable_) buffer_->reserve(plan_->bytes);
}

void MemoryPlanner::end(bool complete) {
  const std::shared_ptr<Measured> measured = std::move(measured_);
  if (!measured) return;
  const std::lock_guard lock(measured->mutex);
  measured->over = true;
  if (complete) plan_ = std::make_shared<Plan>(measured->requests);
}

c10::DataPtr MemoryPlanner::measure(size_t bytes, uint64_t request, c10::Allocator& usual) {
  auto note = std::make_unique<Note<Measured>>();
  note->data = usual.allocate(bytes);
  note->measured = measured_;
  void* const data = note->data.get();
  {
    const std::lock_guard lock(measured_->mutex);
    note->request = measured_->requests.size();
    measured_->requests.push_back({bytes, request, now_});
  }
  return watched_memory(data, std::move(note), &Note<Measured>::remove);
}

/// What was planned for the request, if nobody holds any of it; taken.
MemoryPlanner::PlannedBlock* MemoryPlanner::find(size_t bytes, uint64_t request) {
  if (!usable_ || static_cast<size_t>(now_) >= plan_->at.size()) return nullptr;
  const std::vector<PlannedBlock*>& list = plan_->at[static_cast<size_t>(now_)];
  const auto found = std::lower_bound(
      list.begin(), list.end(), request,
      [](const PlannedBlock* chunk, uint64_t number) { return chunk->number < number; });
  if (found == list.end() || (*found)->number != request || (*found)->bytes != bytes) {
    return nullptr;
  }
  const auto used = [](const PlannedBlock* chunk) {
    return chunk->used.load(std::memory_order_acquire);
  };
  const std::vector<const PlannedBlock*>& sharing = (*found)->sharing;
  if (std::any_of(sharing.begin(), sharing.end(), used)) return nullptr;
  return (*found)->used.exchange(true, std::memory_order_acq_rel) ? nullptr : *found;
}

c10::DataPtr MemoryPlanner::allocate(size_t bytes, c10::Allocator& usual) {
  Cursor& here = cursor();
  MemoryPlanner* const own = here.memory;
  if (!own) return usual.allocate(bytes);
  const uint64_t request = here.loop << 48 | here.block << 24 | here.requests++;
  if (own->measured_) return own->measure(bytes, request, usual);
  PlannedBlock* const chunk = own->find(bytes, request);
  if (!chunk) {
    own->misses_.fetch_add(1, std::memory_order_relaxed);
    return usual.allocate(bytes);
  }
  own->hits_.fetch_add(1, std::memory_order_relaxed);
  chunk->plan = own->plan_;
  chunk->buffer = own->buffer_;
  chunk->buffer->take();
  void* const data = chunk->buffer->start() + chunk->offset;
  try {
    return watched_memory(data, static_cast<void*>(chunk), &PlannedBlock::give_back);
  } catch (...) {
    PlannedBlock::give_back(chunk);
    throw;
  }
}

MemoryPlanner::Stats MemoryPlanner::stats() const {
  if (!plan_) return {};
  return {static_cast<int64_t>(plan_->bytes), static_cast<int64_t>(plan_->asked), hits_, misses_};
}

}  // namespace tessera::detail
