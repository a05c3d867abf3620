#include <tessera/framework/parameter_server/store/tensor_stream.hpp>

#include <algorithm>
#include <cstring>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

namespace {

[[noreturn]] void fail(const std::string& expected, const std::string& received) {
  throw ConfigError("pieces of tensors", expected, received,
                    "let all tasks run the same build of the same program");
}

std::string name_of(const rpc::Piece& piece) {
  return str("part ", piece.part(), ", kind ", piece.kind(), ", ", piece.data().size(),
             " bytes at ", piece.offset());
}

}  // namespace

rpc::StoreState to_message(const StoreState& state) {
  rpc::StoreState message;
  message.set_version(state.version);
  message.set_steps(state.steps);
  message.set_updates(state.updates);
  return message;
}

StoreState from_message(const rpc::StoreState& state) {
  return {state.version(), state.steps(), state.updates()};
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

std::span<std::byte> bytes_of(const at::Tensor& tensor, const Part& part) {
  const auto rows = static_cast<size_t>(part.rows.size());
  if (rows == 0) return {};
  const size_t bytes = static_cast<size_t>(numel(part.shape)) * tensor.element_size();
  return bytes_of(tensor).subspan(static_cast<size_t>(part.rows.lo) * (bytes / rows), bytes);
}

PieceWriter::PieceWriter(const rpc::Head& head, Write write) : write_(std::move(write)) {
  *message_.mutable_head() = head;
}

bool PieceWriter::add(int part, int kind, std::span<const std::byte> bytes) {
  size_t offset = 0;
  // An empty tensor is sent as one piece, too.
  do {
    const size_t size = std::min(bytes.size() - offset, static_cast<size_t>(piece_bytes - filled_));
    rpc::Piece& piece = *message_.add_pieces();
    piece.set_part(part);
    piece.set_kind(kind);
    piece.set_offset(static_cast<int64_t>(offset));
    if (size > 0) piece.set_data(bytes.data() + offset, size);
    offset += size;
    filled_ += static_cast<int64_t>(size);
    if (filled_ == piece_bytes && !flush()) return false;
  } while (offset < bytes.size());
  return stream_ok_;
}

bool PieceWriter::flush() {
  stream_ok_ = stream_ok_ && write_(message_);
  message_.Clear();
  filled_ = 0;
  return stream_ok_;
}

bool PieceWriter::finish() {
  const bool pending = message_.has_head() || message_.pieces_size() > 0;
  return pending ? flush() : stream_ok_;
}

void PieceReader::take(const rpc::Pieces& message) {
  if (message.pieces_size() == 0 && !message.has_head()) fail("a piece in each message", "none");
  for (const rpc::Piece& piece : message.pieces()) take(piece);
}

void PieceReader::take(const rpc::Piece& piece) {
  const std::string& data = piece.data();
  if (filled_ == current_.size()) {
    if (!seen_.emplace(piece.part(), piece.kind()).second) {
      fail("each tensor once", name_of(piece));
    }
    if (piece.offset() != 0) fail("tensors from their first byte", name_of(piece));
    current_ = begin_(piece.part(), piece.kind());
    part_ = piece.part();
    kind_ = piece.kind();
    filled_ = 0;
  } else if (piece.part() != part_ || piece.kind() != kind_ ||
             piece.offset() != static_cast<int64_t>(filled_)) {
    fail(str("part ", part_, ", kind ", kind_, " goes on at ", filled_), name_of(piece));
  }
  const size_t left = current_.size() - filled_;
  if (data.size() > left || (data.empty() && left > 0)) {
    fail(str("from 1 to ", left, " bytes of a tensor of ", current_.size()), name_of(piece));
  }
  if (!data.empty()) std::memcpy(current_.data() + filled_, data.data(), data.size());
  filled_ += data.size();
  total_ += static_cast<int64_t>(data.size());
}

void PieceReader::finish(int64_t bytes) const {
  if (filled_ != current_.size()) {
    fail(str("all ", current_.size(), " bytes of part ", part_), str(filled_));
  }
  if (total_ != bytes) fail(str("the ", bytes, " bytes announced in the head"), str(total_));
}

}  // namespace tessera::detail
