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

/// Samples one of the top-k words by inverse transform of `draw`, a number in [0, 1).
int64_t sample(const at::Tensor& logits, const Sampling& sampling, double draw) {
  const int64_t k = std::min(sampling.top_k, logits.numel());
  // A stable sort: of equal logits the lower token id comes first.
  const at::Tensor order = std::get<1>(at::sort(logits, /*stable=*/true, -1, /*descending=*/true));
  const at::Tensor best = order.narrow(0, 0, k);
  // Subtract the maximum, so that it stays 0 for any temperature.
  const at::Tensor shifted_logits = logits.index_select(0, best).to(at::kDouble) -
                                    logits[best[0].item<int64_t>()].to(at::kDouble);
  const at::Tensor probabilities = at::softmax(shifted_logits.div(sampling.temperature), 0);
  double sum = 0;
  for (int64_t i = 0; i + 1 < k; ++i) {
    sum += probabilities[i].item<double>();
    if (draw < sum) return best[i].item<int64_t>();
  }
  return best[k - 1].item<int64_t>();
}

}  // namespace

void add_sampling_options(app::AppOptions& options, Sampling& sampling) {
  options.add({"words", "Text", "words to add to a text", app::integer(sampling.words, 1)});
  options.add({"top-k", "Text", "sample from this many of the most probable words; 1: greedy",
               app::integer(sampling.top_k, 1)});
  options.add({"temperature", "Text", "divisor of the logits; below 1 favors more probable words",
               app::positive_number(sampling.temperature)});
}

Generator::Generator(const ModelHandle& model, const std::vector<std::string>& vocabulary,
                     int64_t length, const LayoutMap& layouts)
    : model_(model),
      words_(words_of(vocabulary)),
      vocabulary_(vocabulary),
      length_(length),
      layouts_(layouts) {}

/// Returns the logits at the last word of a row, called as a batch of one. Drops those of token ids
/// beyond the vocabulary, which may be smaller than the model's.
at::Tensor Generator::last_logits(const at::Tensor& row, const CallContext& context) const {
  const DTensor logits = model_(pack(row.unsqueeze(0), layouts_.data_layout("x", 2)), context);
  const at::Tensor last = ops::slice(logits, 1, row.numel() - 1, 1).full().flatten();
  return last.narrow(0, 0, std::ssize(vocabulary_));
}

/// Returns the logits at the last word of a row by a prediction in stages. Rows have one length,
/// since each other one is planned anew; words see no later ones.
at::Tensor Generator::predicted_logits(const at::Tensor& row) const {
  const at::Tensor padded = at::constant_pad_nd(row, {0, length_ - row.numel()}).unsqueeze(0);
  const at::Tensor logits =
      model_.predict(TensorDataset(Examples{.x = {padded}}), {.batch_size = 1, .verbose = 0});
  return logits[0][row.numel() - 1].narrow(0, 0, std::ssize(vocabulary_));
}

at::Tensor Generator::next_logits(const std::vector<int64_t>& words) const {
  const size_t count = std::min(words.size(), static_cast<size_t>(length_));
  const at::Tensor row = at::tensor(at::ArrayRef<int64_t>(words).slice(words.size() - count));
  return layouts_.pipeline() ? predicted_logits(row) : last_logits(row, {});
}

at::Tensor Generator::next_logits(const std::vector<int64_t>& words, DecodeState& state) const {
  if (std::ssize(words) > length_ || layouts_.pipeline()) return next_logits(words);
  if (!state.cache) state.cache = std::make_shared<KeyValueCache>();
  const at::ArrayRef<int64_t> more = at::ArrayRef<int64_t>(words).slice(state.words);
  state.words = words.size();
  return last_logits(at::tensor(more), {.cache = state.cache});
}

int64_t Generator::argmax_token(const std::vector<int64_t>& words) const {
  return sample(next_logits(words), {.top_k = 1}, 0);
}

std::string Generator::generate(const std::string& text, const Sampling& sampling) const {
  Continuation continuation = begin(text, sampling);
  while (!continuation.complete()) add_word(continuation);
  return continuation.text;
}

Generator::Continuation Generator::begin(const std::string& text, const Sampling& sampling) const {
  const at::Tensor known = words_({cleaned(text)})[0];
  Continuation continuation{.text = text, .sampling = sampling};
  for (int64_t i = 0; i < known.numel() && known[i].item<int64_t>() != 0; ++i) {
    continuation.words.push_back(known[i].item<int64_t>());
  }
  if (!continuation.words.empty()) return continuation;
  throw ConfigError("generate", "the prompt must contain words", in_quotes(text),
                    "begin with a word or two");
}

void Generator::add_word(Continuation& continuation) const {
  const Sampling& sampling = continuation.sampling;
  float draw = 0;
  stateless_uniform(fold_in({sampling.seed, 0}, static_cast<uint64_t>(continuation.added)), {}, {},
                    0, 1, &draw);
  const at::Tensor logits = next_logits(continuation.words, continuation.state);
  const int64_t word = sample(logits, sampling, draw);
  continuation.words.push_back(word);
  continuation.text += " " + vocabulary_[static_cast<size_t>(word)];
  ++continuation.added;
}

}  // namespace tessera::gpt
