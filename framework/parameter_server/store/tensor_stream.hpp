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

/// Bytes of tensors in one message, at most.
inline constexpr int64_t piece_bytes = 1 << 20;

/// The bytes of a contiguous host tensor; of its rows that are a part of it.
std::span<std::byte> bytes_of(const at::Tensor& tensor);
std::span<std::byte> bytes_of(const at::Tensor& whole, const Part& part);

rpc::StoreState to_message(const StoreState& state);
StoreState from_message(const rpc::StoreState& state);

/// Cuts tensors into the messages of a stream.
class PieceWriter {
 public:
  /// Sends a message; false if the stream is broken.
  using Write = std::function<bool(const rpc::Pieces& message)>;

  /// `head` goes with the first message; its `bytes` are those of all tensors that will follow.
  PieceWriter(const rpc::Head& head, Write write);
  /// The next tensor. False once the stream is broken.
  bool add(int part, int kind, std::span<const std::byte> bytes);
  /// Sends what is left; the first message in any case.
  bool finish();

 private:
  bool flush();

  Write write_;
  rpc::Pieces message_;
  int64_t filled_ = 0;
  bool whole_ = true;
};

/// Puts the tensors of a stream together. Nothing that a message says is believed.
class PieceReader {
 public:
  /// The memory of a tensor that begins, which is exactly as long as its bytes. Throws ConfigError
  /// for a part or kind that there is not.
  using Begin = std::function<std::span<std::byte>(int part, int kind)>;

  explicit PieceReader(Begin begin) : begin_(std::move(begin)) {}
  /// The next message. Throws ConfigError unless its pieces follow those before: tensors one after
  /// the other, each once, from its first byte to its last.
  void take(const rpc::Pieces& message);
  /// Throws ConfigError unless all tensors are whole and have this many bytes together.
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
