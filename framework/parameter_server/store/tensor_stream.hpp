#pragma once

#include <rpc/parameter_server.pb.h>

#include <cstddef>
#include <functional>
#include <set>
#include <span>
#include <utility>

#include <ATen/core/Tensor.h>

#include <tessera/framework/parameter_server/store/parameter_store.hpp>

namespace tessera::detail {

/// Maximum number of tensor bytes in one message.
inline constexpr int64_t piece_bytes = 1 << 20;

/// Return the bytes of a contiguous host tensor, or of the rows of a part.
std::span<std::byte> bytes_of(const at::Tensor& tensor);
std::span<std::byte> bytes_of(const at::Tensor& tensor, const Part& part);

rpc::StoreState to_message(const StoreState& state);
StoreState from_message(const rpc::StoreState& state);

/// Splits tensors into the messages of a stream.
class PieceWriter {
 public:
  /// Sends a message; returns false if the stream is broken.
  using Write = std::function<bool(const rpc::Pieces& message)>;

  /// `head` is sent in the first message; its `bytes` is the total size of all tensors.
  PieceWriter(const rpc::Head& head, Write write);
  /// Adds the next tensor. Returns false once the stream is broken.
  bool add(int part, int kind, std::span<const std::byte> bytes);
  /// Sends the rest, and the first message even if it holds no tensor.
  bool finish();

 private:
  bool flush();

  Write write_;
  rpc::Pieces message_;
  int64_t filled_ = 0;
  bool stream_ok_ = true;
};

/// Reassembles the tensors of a stream from untrusted messages.
class PieceReader {
 public:
  /// Returns the memory for the next tensor, of exactly its size. Throws ConfigError for an unknown
  /// part or kind.
  using Begin = std::function<std::span<std::byte>(int part, int kind)>;

  explicit PieceReader(Begin begin) : begin_(std::move(begin)) {}
  /// Reads the next message. Throws ConfigError unless pieces arrive in order: one tensor after the
  /// other, each once, from its first byte to its last.
  void take(const rpc::Pieces& message);
  /// Throws ConfigError unless all tensors are complete and have `bytes` bytes in total.
  void finish(int64_t bytes) const;

 private:
  void take(const rpc::Piece& piece);

  Begin begin_;
  std::set<std::pair<int, int>> seen_;
  std::span<std::byte> current_;
  int part_ = -1, kind_ = 0;
  size_t filled_ = 0;
  int64_t total_ = 0;
};

}  // namespace tessera::detail
