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

namespace detail {

/// One of Keras' names, none, or a function of the user's own, which is called from several threads
/// at a time.
template <class Result>
class TextStep {
 public:
  using Function = std::function<Result(std::string_view)>;
  TextStep(std::nullptr_t) {}                             // NOLINT: reads as data
  TextStep(const char* name) : name_(name) {}             // NOLINT
  TextStep(std::string name) : name_(std::move(name)) {}  // NOLINT
  template <std::invocable<std::string_view> Call>
  TextStep(Call function) : function_(std::move(function)) {}  // NOLINT
  /// "" for none and for a function.
  const std::string& name() const { return name_; }
  /// Empty unless it is a function.
  const Function& function() const { return function_; }

 private:
  std::string name_;
  Function function_;
};

}  // namespace detail

/// What is done to a text before it is split: "lower", "strip_punctuation", both, nothing
/// (nullptr), or a function.
using Standardize = detail::TextStep<std::string>;
/// What makes tokens of a text: "whitespace", "character", nullptr for one token, or a function.
using Split = detail::TextStep<std::vector<std::string>>;

/// Lengths of n-grams: 2 for all up to that, {2, 3} for just these; none for tokens as they are.
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
  /// Whether it was given as a single number, lengths().back().
  bool single() const { return single_; }

 private:
  std::vector<int64_t> lengths_;
  bool single_ = false;
};

}  // namespace tessera
