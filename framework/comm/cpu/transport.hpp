#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace tessera::detail {

/// A message on its way to or from one rank. Destroyed before it is done, it leaves its channel of
/// no use but to be aborted.
class Transfer {
 public:
  virtual ~Transfer() = default;
  /// Blocks until the memory was filled, or may be written again. Throws CommError when the
  /// connection broke, naming the rank, or the channel was aborted.
  virtual void wait() = 0;
};
using TransferPtr = std::unique_ptr<Transfer>;

/// Reads a received message: `count` bytes that lie `offset` bytes behind its beginning. Called for
/// all of its pieces in order, each of a multiple of 64 bytes but the last, while its owner waits.
using Reader = std::function<void(const std::byte* data, size_t offset, size_t count)>;

/// Carries bytes between the ranks of a run. A message is received under the tag and with the size
/// that it was sent with; messages of equal tag and size between two ranks keep their order. A rank
/// posts its receives from another in the order of that rank's sends, and waits for those with a
/// reader in that order. Sizes are not 0. May be used from several threads.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string name() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Starts to send; never blocks. The memory must stay as it is until the transfer is done.
  virtual TransferPtr send(int to, uint64_t tag, const void* data, size_t bytes) = 0;
  virtual TransferPtr recv(int from, uint64_t tag, void* data, size_t bytes) = 0;
  /// Receives through `reader`, which the transfer's wait() calls.
  virtual TransferPtr recv(int from, uint64_t tag, size_t bytes, Reader reader) = 0;
  /// Whether what was sent arrives though no thread of this rank waits for anything.
  virtual bool sends_alone() const = 0;
  /// Makes every wait, also those under way, throw CommError at once. From any thread.
  virtual void abort(const std::string& reason) = 0;
};

}  // namespace tessera::detail
