#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/nn/handle.hpp>

namespace tessera {

/// Texts with random access, each with a class id. Reading is safe from several threads at once.
class TextData {
 public:
  virtual ~TextData() = default;
  virtual int64_t size() const = 0;
  /// Returns one text, in UTF-8 as it was stored; the bytes live as long as the data.
  virtual std::string_view text(int64_t row) const = 0;
  /// Returns int64 [size]; undefined if the texts have no labels.
  virtual at::Tensor labels() const { return {}; }
  /// Returns the data's name in a history: "imdb", "imdb (synthetic)".
  virtual std::string name() const { return "texts"; }
};

/// A handle to texts, made from a list or a shared pointer:
///
///     vectorize.adapt({"the quick brown fox", "jumps over"});
class TextDataHandle : public Handle<const TextData> {
 public:
  TextDataHandle(std::vector<std::string> texts, at::Tensor labels = {});  // NOLINT: reads as data
  TextDataHandle(std::initializer_list<const char*> texts);
  /// Throws ConfigError for null.
  template <std::derived_from<TextData> Made>
  TextDataHandle(std::shared_ptr<Made> made) : Handle(std::move(made)) {  // NOLINT
    check_made();
  }

 private:
  void check_made() const;
};

}  // namespace tessera
