#pragma once

#include <cstddef>
#include <cstdint>

/// The functions of the library tessera_sentencepiece, which contains nothing of Tessera: it is
/// opened at run time, since SentencePiece's library contains a protobuf of its own, which would
/// replace the one of gRPC.
namespace tessera::detail {

/// Receives a text, or a reason.
using TakeBytes = void (*)(void* context, const char* bytes, size_t size);
/// Receives a number.
using TakeId = void (*)(void* context, int32_t id);

/// All functions, which the library's `tessera_sentence_piece` returns. A function that returns a
/// bool calls `fail` with the reason before it returns false.
struct SentencePieceFunctions {
  /// Reads a model; null after `fail`.
  void* (*open)(const char* bytes, size_t size, TakeBytes fail, void* context);
  void (*close)(void* model);
  int32_t (*size)(const void* model);
  bool (*is_control)(const void* model, int32_t id);
  void (*piece)(const void* model, int32_t id, TakeBytes take, void* context);
  int32_t (*id)(const void* model, const char* piece, size_t size);
  bool (*encode)(const void* model, const char* text, size_t size, TakeId take, TakeBytes fail,
                 void* context);
  bool (*decode)(const void* model, const int32_t* ids, size_t count, TakeBytes take,
                 TakeBytes fail, void* context);
};

constexpr const char* sentence_piece_symbol = "tessera_sentence_piece";

}  // namespace tessera::detail
