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
  // Behind the likeliest one, which is 0 whatever it is divided by.
  const at::Tensor behind = logits.index_select(0, best).to(at::kDouble) -
                            logits[best[0].item<int64_t>()].to(at::kDouble);
  const at::Tensor shares = at::softmax(behind.div(sampling.temperature), 0);
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
  options.add({"temperature", "Text",
               "what logits are divided by: below 1 likelier words are more "
               "often chosen",
               app::positive_number(sampling.temperature)});
}

Generator::Generator(const ModelHandle& model, const std::vector<std::string>& vocabulary,
                     int64_t length, const LayoutMap& layouts)
    : model_(model),
      words_(words_of(vocabulary)),
      vocabulary_(vocabulary),
      length_(length),
      layouts_(layouts) {}

/// Of the last of some of a row's words, without those that no word has: a model may know more than
/// there were. The batch has this one row.
at::Tensor Generator::last_logits(const at::Tensor& row, const CallContext& context) const {
  const DTensor logits = model_(pack(row.unsqueeze(0), layouts_.data_layout("x", 2)), context);
  const at::Tensor last = ops::slice(logits, 1, row.numel() - 1, 1).full().flatten();
  return last.narrow(0, 0, std::ssize(vocabulary_));
}

at::Tensor Generator::logits_behind(const std::vector<int64_t>& words) const {
  const size_t count = std::min(words.size(), static_cast<size_t>(length_));
  return last_logits(at::tensor(at::ArrayRef<int64_t>(words).slice(words.size() - count)), {});
}

at::Tensor Generator::logits_behind(const std::vector<int64_t>& words, Seen& seen) const {
  if (std::ssize(words) > length_) return logits_behind(words);
  if (!seen.cache) seen.cache = std::make_shared<KeyValueCache>();
  const at::ArrayRef<int64_t> more = at::ArrayRef<int64_t>(words).slice(seen.words);
  seen.words = words.size();
  return last_logits(at::tensor(more), {.cache = seen.cache});
}

int64_t Generator::likeliest_behind(const std::vector<int64_t>& words) const {
  return chosen(logits_behind(words), {.top_k = 1}, 0);
}

std::string Generator::continued(const std::string& text, const Sampling& sampling,
                                 const std::stop_token& stop) const {
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
  Seen seen;
  for (int64_t i = 0; i < sampling.words && !stop.stop_requested(); ++i) {
    float draw = 0;
    stateless_uniform(fold_in({sampling.seed, 0}, static_cast<uint64_t>(i)), {}, {}, 0, 1, &draw);
    const int64_t word = chosen(logits_behind(words, seen), sampling, draw);
    words.push_back(word);
    all += " " + vocabulary_[static_cast<size_t>(word)];
  }
  return all;
}

}  // namespace tessera::gpt
