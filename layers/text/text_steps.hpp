#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

/// One of Keras' names, none, or a user-defined function, which is called from several threads at
/// once.
template <class Result>
class TextStep {
 public:
  using Function = std::function<Result(std::string_view)>;
  TextStep(std::nullptr_t) {}                             // NOLINT: reads as data
  TextStep(const char* name) : name_(name) {}             // NOLINT
  TextStep(std::string name) : name_(std::move(name)) {}  // NOLINT
  template <std::invocable<std::string_view> Call>
  TextStep(Call call) : function_(std::move(call)) {}  // NOLINT
  /// Returns "" for none and for a function.
  const std::string& name() const { return name_; }
  /// Returns the function, or an empty one.
  const Function& function() const { return function_; }

 private:
  std::string name_;
  Function function_;
};

/// Preprocessing of a text before it is split: "lower", "strip_punctuation",
/// "lower_and_strip_punctuation", nullptr (none), or a function.
using Standardize = TextStep<std::string>;
/// Splits a text into tokens: "whitespace", "character", nullptr (one token), or a function.
using Split = TextStep<std::vector<std::string>>;

/// Lengths of n-grams: 2 for 1 and 2, {2, 3} for exactly these; empty for single tokens.
class Ngrams {
 public:
  Ngrams() = default;
  Ngrams(int64_t up_to) : single_(true) {  // NOLINT: reads as data
    for (int64_t n = 1; n <= up_to; ++n) lengths_.push_back(n);
    if (up_to < 1) lengths_ = {up_to};
  }
  Ngrams(std::initializer_list<int64_t> lengths) : lengths_(lengths) {}
  explicit Ngrams(std::vector<int64_t> lengths) : lengths_(std::move(lengths)) {}
  const std::vector<int64_t>& lengths() const { return lengths_; }
  /// Whether it was constructed from a single number, lengths().back().
  bool single() const { return single_; }

 private:
  std::vector<int64_t> lengths_;
  bool single_ = false;
};

}  // namespace tessera
