#include "apps/gpt/generator.hpp"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/random.hpp>

#include "apps/gpt/corpus.hpp"

namespace tessera::gpt {

using namespace detail;

namespace {

/// One of the likeliest words, by the share of the whole that a number in [0, 1) falls into.
int64_t chosen(const at::Tensor& logits, const Sampling& sampling, double draw) {
  const int64_t k = std::min(sampling.top_k, logits.numel());
  // Of equal logits the lower number comes first.
  const at::Tensor order = std::get<1>(at::sort(logits, /*stable=*/true, -1, /*descending=*/true));
  const at::Tensor best = order.narrow(0, 0, k);
  const at::Tensor shares = at::softmax(
      logits.index_select(0, best).to(at::kDouble).div(sampling.temperature), 0);
  double sum = 0;
  for (int64_t i = 0; i + 1 < k; ++i) {
    sum += shares[i].item<double>();
    if (draw < sum) return best[i].item<int64_t>();
  }
  return best[k - 1].item<int64_t>();
}

}  // namespace

void add_sampling_options(app::AppOptions& options, Sampling& sampling) {
  options.add({"words", "Text", "words to add to a text", app::integer(sampling.words, 1)});
  options.add({"top-k", "Text", "choose among so many of the likeliest words; 1: the likeliest",
               app::integer(sampling.top_k, 1)});
}

Generator::Generator(const ModelHandle& model, const std::vector<std::string>& vocabulary,
                     int64_t length, const LayoutMap& layouts)
    : model_(model), words_(words_of(vocabulary, length)), vocabulary_(vocabulary),
      length_(length), layouts_(layouts) {}

/// The model sees its whole length, as in training: what follows does not change what it says.
at::Tensor Generator::logits_behind(const std::vector<int64_t>& words) const {
  const auto count = std::ssize(words);
  const int64_t first = std::max<int64_t>(count - length_, 0);
  at::Tensor row = at::zeros({1, length_}, at::kLong);
  for (int64_t i = first; i < count; ++i) row[0][i - first] = words[static_cast<size_t>(i)];
  const DTensor logits = model_(pack(row, layouts_.data_layout("x", 2)));
  return ops::slice(logits, 1, count - first - 1, 1).full().flatten();
}

int64_t Generator::likeliest_behind(const std::vector<int64_t>& words) const {
  return chosen(logits_behind(words), {.top_k = 1}, 0);
}

std::string Generator::continued(const std::string& text, const Sampling& sampling) const {
  const at::Tensor known = words_({cleaned(text)})[0];
  std::vector<int64_t> words;
  for (int64_t i = 0; i < known.numel() && known[i].item<int64_t>() != 0; ++i) {
    words.push_back(known[i].item<int64_t>());
  }
  if (words.empty()) {
    throw ConfigError("generate", "a text to go on from has words", in_quotes(text),
                      "begin with a word or two");
  }
  std::string all = text;
  for (int64_t i = 0; i < sampling.words; ++i) {
    float draw = 0;
    stateless_uniform(fold_in({sampling.seed, 0}, static_cast<uint64_t>(i)), {}, {}, 0, 1, &draw);
    const int64_t word = chosen(logits_behind(words), sampling, draw);
    words.push_back(word);
    all += " " + vocabulary_[static_cast<size_t>(word)];
  }
  return all;
}

}  // namespace tessera::gpt
