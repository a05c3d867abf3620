#include <dlfcn.h>

#include <memory>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/text/internal/sentence_piece_functions.hpp>
#include <tessera/framework/text/internal/tokenizer_pipeline.hpp>

namespace tessera::detail {
namespace {

constexpr uint64_t max_model_bytes = uint64_t{256} << 20;
constexpr const char* library_name = "libtessera_sentencepiece.so";
constexpr const char* instead =
    "install libsentencepiece-dev and build again, or convert the file to tokenizer.json";

/// A function that every protobuf exports.
constexpr const char* protobuf_symbol = "_ZN6google8protobuf11MessageLiteD2Ev";

/// Opens the library next to the one that contains this function, or in `lib` next to a program.
void* open_library() {
  Dl_info own{};
  if (::dladdr(reinterpret_cast<void*>(&load_sentence_piece), &own) != 0) {
    std::string folder = own.dli_fname;
    folder.resize(folder.rfind('/') == std::string::npos ? 0 : folder.rfind('/') + 1);
    for (const char* place : {"", "../lib/"}) {
      const std::string path = folder + place + library_name;
      if (void* opened = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return opened;
    }
  }
  return ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
}

/// Returns the functions of the library; null if it is missing. It is never closed.
const SentencePieceFunctions* find_functions() {
  void* library = open_library();
  void* symbol = library ? ::dlsym(library, sentence_piece_symbol) : nullptr;
  return symbol ? reinterpret_cast<const SentencePieceFunctions* (*)()>(symbol)() : nullptr;
}

const SentencePieceFunctions& sentence_piece(const std::string& path) {
  if (::dlsym(RTLD_DEFAULT, protobuf_symbol)) {
    throw ConfigError(path, "a process without protobuf: SentencePiece contains another one",
                      "a process with protobuf",
                      "convert the file to tokenizer.json, or use a process without gRPC");
  }
  static const SentencePieceFunctions* const functions = find_functions();
  if (functions) return *functions;
  throw ConfigError(path, str("the library ", library_name), "none", instead);
}

void append_bytes(void* text, const char* bytes, size_t size) {
  static_cast<std::string*>(text)->append(bytes, size);
}

/// A tokenizer of SentencePiece's own library.
class SentencePiecePipeline final : public TokenizerPipeline {
 public:
  explicit SentencePiecePipeline(const std::string& path) : functions_(sentence_piece(path)) {
    const std::string bytes = read_file(path, max_model_bytes);
    std::string reason;
    model_.reset(functions_.open(bytes.data(), bytes.size(), append_bytes, &reason));
    if (!model_) {
      throw FileError(path, "a model of SentencePiece", one_line(reason, 200),
                      "write the file again");
    }
  }

  void append_tokens(std::string_view text, std::vector<int32_t>& ids) const override {
    Output out{&ids, {}};
    if (!functions_.encode(model_.get(), text.data(), text.size(), take_id, take_bytes, &out)) {
      fail(out.text);
    }
  }

  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const override {
    std::vector<int32_t> known;
    for (const int32_t id : ids) {
      if (!has(id)) continue;
      if (!(skip_special_tokens && functions_.is_control(model_.get(), id))) known.push_back(id);
    }
    Output out{nullptr, {}};
    if (!functions_.decode(model_.get(), known.data(), known.size(), take_bytes, take_bytes,
                           &out)) {
      fail(out.text);
    }
    return out.text;
  }

  int64_t vocabulary_size() const override { return functions_.size(model_.get()); }

  std::optional<int32_t> token_id(std::string_view token) const override {
    // Unknown pieces have the id of the unknown token.
    const int32_t id = functions_.id(model_.get(), token.data(), token.size());
    return this->token(id) == token ? std::optional(id) : std::nullopt;
  }

  std::optional<std::string> token(int32_t id) const override {
    if (!has(id)) return std::nullopt;
    std::string text;
    functions_.piece(model_.get(), id, append_bytes, &text);
    return text;
  }

 private:
  struct Output {
    std::vector<int32_t>* ids;
    std::string text;
  };

  static void take_id(void* out, int32_t id) { static_cast<Output*>(out)->ids->push_back(id); }
  static void take_bytes(void* out, const char* bytes, size_t size) {
    static_cast<Output*>(out)->text.append(bytes, size);
  }
  [[noreturn]] static void fail(const std::string& reason) {
    throw ConfigError("SentencePiece", "input that it accepts", one_line(reason, 200), "");
  }
  bool has(int32_t id) const { return id >= 0 && id < vocabulary_size(); }

  const SentencePieceFunctions& functions_;
  std::unique_ptr<void, void (*)(void*)> model_{nullptr, functions_.close};
};

}  // namespace

std::shared_ptr<const TokenizerPipeline> load_sentence_piece(const std::string& path) {
  return std::make_shared<const SentencePiecePipeline>(path);
}

}  // namespace tessera::detail
