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

/// Texts that can be read in any order, with a class number each. Reading is safe from several
/// threads at a time.
class TextData {
 public:
  virtual ~TextData() = default;
  virtual int64_t size() const = 0;
  /// The bytes of one text, UTF-8 as it was stored; they live as long as the data.
  virtual std::string_view text(int64_t row) const = 0;
  /// int64 [size]; undefined if the texts have no labels.
  virtual at::Tensor labels() const { return {}; }
  /// What a history calls it: "imdb", "imdb (synthetic)".
  virtual std::string name() const { return "texts"; }
};

/// A handle to texts, made of them by value or shared:
///
///     vectorize.adapt({"the quick brown fox", "jumps over"});
class TextDataHandle : public detail::Handle<const TextData> {
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
