#include <tessera/framework/comm/cpu/transfer_lane.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <thread>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/hash.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/signal_guard.hpp>

namespace tessera::detail {
namespace {

constexpr std::chrono::milliseconds max_flush = std::chrono::seconds(3);

enum class MessagePart : uint64_t { note = 1, tensor = 2 };

/// Tags of collectives are hashes, too; these are of another kind.
uint64_t tag_of(uint64_t number, MessagePart part) {
  return mix(mix(0x7472616e73666572, number), static_cast<uint64_t>(part));
}

}  // namespace

/// A note that precedes each message: its number, its size and a description.
struct TransferLane::Note {
  uint64_t number = 0;
  uint64_t bytes = 0;
  std::array<char, 240> what = {};

  Note() = default;
  Note(uint64_t order, const at::Tensor& tensor, const std::string& text)
      : number(order), bytes(tensor.nbytes()) {
    std::memcpy(what.data(), text.data(), std::min(text.size(), what.size() - 1));
  }
  std::string describe() const {
    const std::string text(what.data(), strnlen(what.data(), what.size()));
    return str("#", number, " of ", one_line(text), ", ", bytes, " bytes");
  }
  bool operator==(const Note&) const = default;
};

/// A message on its way, and what it needs meanwhile.
struct TransferLane::Moving {
  int rank = 0;
  std::unique_ptr<Note> expected = nullptr, note = std::make_unique<Note>();
  at::Tensor tensor = {};
  at::Tensor target = {};  ///< if it is defined, what was received is copied to it
  TransferPtr note_transfer = nullptr, tensor_transfer = nullptr;

  void finish() {
    note_transfer->wait();
    if (expected && !(*expected == *note)) {
      throw CommError("transfer", "two ranks make the transfers between them in the same order",
                      str(expected->describe(), " is awaited of rank ", rank, ", which sends ",
                          note->describe()),
                      "look for code that depends on the rank");
    }
    tensor_transfer->wait();
    if (target.defined()) target.copy_(tensor);
  }
};

/// The messages of one exchange, or those from one rank.
struct TransferLane::MovingGroup {
  std::vector<Moving> messages;
  std::function<void(std::exception_ptr)> done;
};

/// Waits for messages in their order, on its own thread.
class TransferLane::Edge {
 public:
  explicit Edge(TransferLane& lane) : lane_(lane) {
    const SignalGuard guard(SignalGuard::Which::all);
    thread_ = std::thread([this] { serve(); });
  }
  ~Edge() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void push(MovingGroup group) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      groups_.push_back(std::move(group));
    }
    changed_.notify_all();
  }
  /// Returns whether no message is left, waiting for that at most as long as `patience`.
  bool is_idle(std::chrono::milliseconds patience = {}) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return groups_.empty() && !moving_; });
  }

 private:
  void serve() {
    const c10::InferenceMode inference;
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return closed_ || !groups_.empty(); });
      if (groups_.empty()) return;
      MovingGroup group = std::move(groups_.front());
      groups_.pop_front();
      moving_ = true;
      lock.unlock();
      finish(group);
      group = {};
      lock.lock();
      moving_ = false;
      changed_.notify_all();
    }
  }

  void finish(MovingGroup& group) {
    std::exception_ptr error;
    try {
      for (Moving& message : group.messages) message.finish();
    } catch (const std::exception& caught) {
      error = std::current_exception();
      lane_.on_error(caught.what());
    } catch (...) {
      error = std::current_exception();
    }
    if (group.done) group.done(error);
  }

  TransferLane& lane_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<MovingGroup> groups_;
  bool moving_ = false;
  bool closed_ = false;
  std::thread thread_;
};

/// The receives of one exchange.
class TransferLane::ReceivedWork final : public Work {
 public:
  explicit ReceivedWork(size_t ranks) : ranks_(ranks) {}
  void wait() override {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return ranks_ == 0; });
    if (error_) std::rethrow_exception(error_);
  }
  bool done() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ranks_ == 0;
  }
  void finish_one(std::exception_ptr error) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      --ranks_;
      if (error && !error_) error_ = std::move(error);
    }
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  size_t ranks_;
  std::exception_ptr error_;
};

TransferLane::TransferLane(Transport& transport, std::function<void(const std::string&)> fail)
    : transport_(transport), fail_(std::move(fail)) {}

TransferLane::~TransferLane() {
  bool idle = !out_ || out_->is_idle();
  for (const auto& [rank, edge] : in_) idle = idle && edge->is_idle();
  if (!idle) transport_.abort("the communicator was destroyed");
}

void TransferLane::flush() {
  Edge* out = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    out = out_.get();
  }
  if (out) out->is_idle(max_flush);
}

void TransferLane::on_error(const std::string& line) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::exchange(failed_, true)) return;
  }
  fail_(line);
}

TransferLane::Edge& TransferLane::edge(std::unique_ptr<Edge>& slot) {
  if (!slot) slot = std::make_unique<Edge>(*this);
  return *slot;
}

WorkPtr TransferLane::exchange(const std::string& what, const std::vector<Message>& sends,
                               const std::vector<Message>& recvs) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Receives first: a peer can send at once if the receive is posted.
  std::map<int, MovingGroup> received;
  for (const auto& [from, target] : recvs) {
    Moving message{.rank = from};
    message.tensor = target.is_contiguous() ? target : at::empty(target.sizes(), target.options());
    if (!message.tensor.is_same(target)) message.target = target;
    const uint64_t number = ++awaited_[from];
    message.expected = std::make_unique<Note>(number, message.tensor, what);
    message.note_transfer =
        transport_.recv(from, tag_of(number, MessagePart::note), message.note.get(), sizeof(Note));
    message.tensor_transfer =
        transport_.recv(from, tag_of(number, MessagePart::tensor),
                        message.tensor.mutable_data_ptr(), message.tensor.nbytes());
    received[from].messages.push_back(std::move(message));
  }
  MovingGroup sent;
  for (const auto& [to, tensor] : sends) {
    Moving message{.rank = to, .tensor = tensor.contiguous()};
    const uint64_t number = ++sent_[to];
    *message.note = Note(number, message.tensor, what);
    message.note_transfer =
        transport_.send(to, tag_of(number, MessagePart::note), message.note.get(), sizeof(Note));
    message.tensor_transfer =
        transport_.send(to, tag_of(number, MessagePart::tensor), message.tensor.const_data_ptr(),
                        message.tensor.nbytes());
    sent.messages.push_back(std::move(message));
  }
  if (!sent.messages.empty()) edge(out_).push(std::move(sent));
  if (received.empty()) return nullptr;
  const auto work = std::make_shared<ReceivedWork>(received.size());
  for (auto& [from, group] : received) {
    group.done = [work](std::exception_ptr error) { work->finish_one(std::move(error)); };
    edge(in_[from]).push(std::move(group));
  }
  return work;
}

}  // namespace tessera::detail
