#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace tessera::detail {

/// A message in transit to or from one rank. If it is destroyed before it is done, its transport is
/// unusable and can only be aborted.
class Transfer {
 public:
  virtual ~Transfer() = default;
  /// Blocks until a received message is complete, or the memory of a sent one may be written again.
  /// Throws CommError if the connection broke, naming the rank, or the transport was aborted.
  virtual void wait() = 0;
};
using TransferPtr = std::unique_ptr<Transfer>;

/// Reads `count` bytes of a received message, at `offset`. Called for consecutive pieces, all but
/// the last a multiple of 64 bytes, while the message's owner waits.
using Reader = std::function<void(const std::byte* data, size_t offset, size_t count)>;

/// Carries bytes between the ranks of a run. A receive matches a message of the same tag and size;
/// messages of equal tag and size between two ranks keep their order. A rank must post its receives
/// from another rank in the order of that rank's sends, and wait for those with a reader in that
/// order. Sizes are not 0. Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string name() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Starts to send; never blocks. The memory must not change until the transfer is done.
  virtual TransferPtr send(int to, uint64_t tag, const void* data, size_t bytes) = 0;
  virtual TransferPtr recv(int from, uint64_t tag, void* data, size_t bytes) = 0;
  /// Receives through `reader`, which the transfer's wait() calls.
  virtual TransferPtr recv(int from, uint64_t tag, size_t bytes, Reader reader) = 0;
  /// Whether sent messages arrive even if no thread of this rank waits for a transfer.
  virtual bool sends_in_background() const = 0;
  /// Returns the transport for messages that wait for none of this one's, and none of this one's
  /// for them: this one, if a message waits for no other. It lives as long as this one.
  virtual Transport& apart() { return *this; }
  /// Returns once messages whose sends are done arrive even if this process ends, after a few
  /// seconds at most. Never throws CommError.
  virtual void flush() {}
  /// Makes every current and future wait throw CommError at once. Callable from any thread.
  virtual void abort(const std::string& reason) = 0;
};

}  // namespace tessera::detail
