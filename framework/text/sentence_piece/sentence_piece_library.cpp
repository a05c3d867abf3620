#include <memory>
#include <string>
#include <vector>

#include <sentencepiece_processor.h>

#include <tessera/framework/text/internal/sentence_piece_functions.hpp>

namespace {

using sentencepiece::SentencePieceProcessor;
using tessera::detail::SentencePieceFunctions;
using tessera::detail::TakeBytes;
using tessera::detail::TakeId;

const SentencePieceProcessor& model_of(const void* model) {
  return *static_cast<const SentencePieceProcessor*>(model);
}

bool succeeded(const sentencepiece::util::Status& status, TakeBytes fail, void* context) {
  if (status.ok()) return true;
  const std::string text = status.ToString();
  fail(context, text.data(), text.size());
  return false;
}

void* open(const char* bytes, size_t size, TakeBytes fail, void* context) {
  auto made = std::make_unique<SentencePieceProcessor>();
  if (!succeeded(made->LoadFromSerializedProto({bytes, size}), fail, context)) return nullptr;
  return made.release();
}

void close(void* model) { delete static_cast<SentencePieceProcessor*>(model); }

int32_t size(const void* model) { return model_of(model).GetPieceSize(); }

bool is_control(const void* model, int32_t id) { return model_of(model).IsControl(id); }

void piece(const void* model, int32_t id, TakeBytes take, void* context) {
  const std::string& text = model_of(model).IdToPiece(id);
  take(context, text.data(), text.size());
}

int32_t id(const void* model, const char* piece, size_t size) {
  return model_of(model).PieceToId({piece, size});
}

bool encode(const void* model, const char* text, size_t size, TakeId take, TakeBytes fail,
            void* context) {
  std::vector<int> ids;
  if (!succeeded(model_of(model).Encode({text, size}, &ids), fail, context)) return false;
  for (const int made : ids) take(context, made);
  return true;
}

bool decode(const void* model, const int32_t* ids, size_t count, TakeBytes take, TakeBytes fail,
            void* context) {
  std::string text;
  const std::vector<int> list(ids, ids + count);
  if (!succeeded(model_of(model).Decode(list, &text), fail, context)) return false;
  take(context, text.data(), text.size());
  return true;
}

}  // namespace

extern "C" const SentencePieceFunctions* tessera_sentence_piece() {
  static const SentencePieceFunctions functions = {open,  close, size,   is_control,
                                                   piece, id,    encode, decode};
  return &functions;
}
