#include "tests/support/fake_nccl/communicator.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include <tessera/framework/base/error.hpp>

#include "tests/support/fake_gpu/streams.hpp"
#include "tests/support/fake_nccl/fake_nccl.hpp"
#include "tests/support/fake_nccl/progress.hpp"

namespace tessera::test::fake_nccl {

namespace {

/// How often a non-blocking communicator reports that it is in progress.
constexpr int questions = 3;

struct Fault {
  std::mutex mutex;
  int rank = -1;
  int64_t group = -1;

  Fault() {
    const char* const text = std::getenv("TESSERA_FAKE_NCCL_FAILS");
    long long at = 0;
    if (text && std::sscanf(text, "%d:%lld", &rank, &at) == 2) group = at;
  }
};
Fault& fault() {
  static auto* const instance = new Fault;
  return *instance;
}

/// Whether the rank's next group is the one that shall fail.
bool fails_now(int rank) {
  const std::lock_guard lock(fault().mutex);
  return fault().group >= 0 && fault().rank == rank && fault().group-- == 0;
}

}  // namespace

void fail_at(int rank, int64_t group) {
  const std::lock_guard lock(fault().mutex);
  fault().rank = rank;
  fault().group = group;
}

NcclResult Communicator::begin(std::vector<Operation> operations, c10::Stream stream) {
  auto running = std::make_shared<Running>();
  for (const Operation& operation : operations) {
    running->received.emplace_back();
    running->received.back().reserve(operation.senders.size());
  }
  running->operations = std::move(operations);
  running->fails = fails_now(rank_);
  if (blocks_) {
    put({running, stream});
    return NcclResult::success;
  }
  const std::lock_guard lock(mutex_);
  questions_ = questions;
  waiting_ = Waiting{running, stream};
  return NcclResult::in_progress;
}

NcclResult Communicator::state() {
  std::optional<Waiting> ready;
  {
    const std::lock_guard lock(mutex_);
    if (failed_ != NcclResult::success) return failed_;
    if (!mailbox_.is_complete()) return NcclResult::in_progress;
    if (questions_ > 0) {
      if (--questions_ > 0) return NcclResult::in_progress;
      ready = std::exchange(waiting_, std::nullopt);
    }
  }
  // The stream's lock must be taken before this one's.
  if (ready) put(*ready);
  return NcclResult::success;
}

const std::string& Communicator::what_is_wrong() {
  const std::lock_guard lock(mutex_);
  return why_;
}

void Communicator::abort() {
  aborted_ = true;
  const std::lock_guard lock(mutex_);
  waiting_.reset();
  mailbox_.leave();
}

void Communicator::put(const Waiting& waiting) {
  const uint64_t position = fake_gpu::enqueue(
      waiting.stream,
      [self = shared_from_this(), running = waiting.running] { return self->go_on(*running); });
  run_by_itself(waiting.stream, position);
}

/// Runs on a stream, like a kernel.
bool Communicator::go_on(Running& running) {
  const std::lock_guard lock(mutex_);
  if (aborted_) return true;
  if (std::exchange(running.fails, false)) fail(remote_error, "planted by a test");
  // Then only an abort ends it.
  if (failed_ != NcclResult::success) return false;
  if (!std::exchange(running.posted, true)) {
    for (const Operation& operation : running.operations) {
      for (const Operation::Letter& letter : operation.letters) {
        mailbox_.send(letter.to, operation.name + "\n" + std::string(letter.data, letter.bytes));
      }
    }
  }
  if (!receive(running)) return false;
  for (size_t i = 0; i < running.operations.size(); ++i) {
    if (running.operations[i].combine) running.operations[i].combine(running.received[i]);
  }
  return true;
}

/// Whether all messages have arrived.
bool Communicator::receive(Running& running) {
  for (size_t i = 0; i < running.operations.size(); ++i) {
    const Operation& operation = running.operations[i];
    std::vector<std::string>& received = running.received[i];
    while (received.size() < operation.senders.size()) {
      const int from = operation.senders[received.size()];
      const std::optional<std::string> message = mailbox_.receive(from);
      if (!message) return false;
      const size_t end = message->find('\n');
      if (message->compare(0, end, operation.name) != 0) {
        fail(invalid_usage, str("rank ", from, " is at ", message->substr(0, end), ", rank ", rank_,
                                " at ", operation.name));
        return false;
      }
      received.push_back(message->substr(end + 1));
    }
  }
  return true;
}

void Communicator::fail(NcclResult result, const std::string& why) {
  failed_ = result;
  why_ = why;
}

}  // namespace tessera::test::fake_nccl
