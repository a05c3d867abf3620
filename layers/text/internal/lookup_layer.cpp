#include <tessera/layers/text/internal/lookup_layer.hpp>

#include <algorithm>
#include <numeric>

#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/layers/text/internal/text_dataset.hpp>
#include <tessera/layers/text/internal/vocabulary_file.hpp>

namespace tessera::detail {
namespace {

constexpr int64_t texts_per_pass = 2048;
constexpr int64_t texts_per_thread = 8;

/// Returns the range of rows that the blocks of this process hold.
Interval local_rows(int64_t texts, int64_t width, const Layout& layout) {
  const ShardingPtr sharding = intern({texts, width}, at::kFloat, layout);
  Interval rows{texts, 0};
  for (const BlockInfo& block : sharding->blocks) {
    if (block.intervals[0].empty()) continue;
    rows = {std::min(rows.lo, block.intervals[0].lo), std::max(rows.hi, block.intervals[0].hi)};
  }
  return rows.empty() ? Interval{0, 0} : rows;
}

int64_t threads_for(int64_t texts) {
  const int64_t useful = (texts + texts_per_thread - 1) / texts_per_thread;
  return std::clamp<int64_t>(useful, 1, at::get_num_threads());
}

/// Splits `size` texts into passes of `texts_per_pass`. In each, calls work(thread, interval) on
/// several threads with equal intervals of its texts, then after(threads) and progress.
template <class Work, class After>
void for_each_pass(int64_t size, const TextProgress& progress, const Work& work,
                   const After& after) {
  for (int64_t first = 0; first < size; first += texts_per_pass) {
    const int64_t count = std::min(texts_per_pass, size - first);
    const int64_t threads = threads_for(count);
    at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t thread = begin; thread < end; ++thread) {
        const Interval interval = shard_interval(count, threads, thread);
        work(static_cast<size_t>(thread), Interval{first + interval.lo, first + interval.hi});
      }
    });
    after(static_cast<size_t>(threads));
    if (progress) progress(first + count, size);
  }
}

}  // namespace

std::string error_prefix(const std::string& class_name, const std::string& name) {
  return name.empty() ? class_name : class_name + " " + name;
}

/// Buffers of one thread.
struct LookupLayer::Scratch {
  Tokens tokens = {};
  std::vector<int64_t> counts = {};   ///< by index; zeros between texts
  std::vector<int32_t> indices = {};  ///< indices of nonzero counts
};

LookupLayer::LookupLayer(const std::string& class_name, const LayerOptions& base,
                         IndexLookupOptions options, std::optional<int64_t> length)
    : TextLayer(base), class_name_(class_name), lookup_(std::move(options)), length_(length) {}

const std::vector<int64_t>& LookupLayer::ngrams() const {
  static const std::vector<int64_t> none;
  return none;
}

Shape LookupLayer::text_shape() const {
  if (lookup_.output() == TokenEncoding::index) return {length_.value_or(-1)};
  return {lookup_.depth()};
}

template <class Visit>
void LookupLayer::for_each_token(const Tokens& tokens, const Visit& visit) const {
  if (ngrams().empty()) {
    for (int64_t i = 0; i < tokens.size(); ++i) visit(tokens.joined(i));
  }
  for (const int64_t n : ngrams()) {
    for (int64_t i = 0; i + n <= tokens.size(); ++i) visit(tokens.joined(i, n));
  }
}

void LookupLayer::add_sequence(Scratch& scratch, TextRows& out) const {
  const size_t max_length = length_ ? static_cast<size_t>(*length_) : SIZE_MAX;
  const size_t before = out.columns.size();
  for_each_token(scratch.tokens, [&](std::string_view token) {
    if (out.columns.size() - before == max_length) return;
    out.columns.push_back(static_cast<int32_t>(lookup_.index(token)));
  });
  out.ends.push_back(static_cast<int64_t>(out.columns.size()));
}

void LookupLayer::add_bag(Scratch& scratch, TextRows& out) const {
  scratch.counts.resize(static_cast<size_t>(lookup_.vocabulary_size()));
  scratch.indices.clear();
  for_each_token(scratch.tokens, [&](std::string_view token) {
    const int64_t index = lookup_.index(token);
    if (index == IndexLookup::masked) return;
    if (scratch.counts[static_cast<size_t>(index)]++ > 0) return;
    scratch.indices.push_back(static_cast<int32_t>(index));
  });
  std::sort(scratch.indices.begin(), scratch.indices.end());
  for (const int32_t index : scratch.indices) {
    int64_t& count = scratch.counts[static_cast<size_t>(index)];
    float value = 1;
    if (lookup_.output() == TokenEncoding::count) value = static_cast<float>(count);
    if (lookup_.output() == TokenEncoding::tf_idf) {
      value = static_cast<float>(count) * lookup_.idf_weights()[static_cast<size_t>(index)];
    }
    out.columns.push_back(index);
    out.values.push_back(value);
    count = 0;
  }
  out.ends.push_back(static_cast<int64_t>(out.columns.size()));
}

void LookupLayer::check_ready() const {
  if (ready()) return;
  throw StateError(where(), "the vocabulary is known", "none",
                   "call adapt() or set_vocabulary(), or give `vocabulary`");
}

TextRows LookupLayer::rows(int64_t size, const TokensAt& tokens,
                           const TextProgress& progress) const {
  check_ready();
  if (lookup_.options().invert) {
    throw ConfigError(where(), "a layer that inverts is called on indices", "texts",
                      "use one without `invert` for texts");
  }
  const bool sequences = lookup_.output() == TokenEncoding::index;
  TextRows all{.sequences = sequences, .width = text_shape()[0]};
  std::vector<Scratch> scratch(static_cast<size_t>(threads_for(texts_per_pass)));
  std::vector<TextRows> thread_rows(scratch.size());
  const auto work = [&](size_t thread, Interval interval) {
    thread_rows[thread] = {.sequences = sequences};
    for (int64_t i = interval.lo; i < interval.hi; ++i) {
      tokens(i, scratch[thread].tokens);
      if (sequences) {
        add_sequence(scratch[thread], thread_rows[thread]);
      } else {
        add_bag(scratch[thread], thread_rows[thread]);
      }
    }
  };
  const auto append_rows = [&](size_t threads) {
    for (size_t i = 0; i < threads; ++i) all.append(thread_rows[i]);
  };
  with_error_location([&] { for_each_pass(size, progress, work, append_rows); });
  all.close();
  return all;
}

Shape LookupLayer::batch_shape(std::span<const std::string_view> texts) const {
  const auto size = static_cast<int64_t>(texts.size());
  if (const int64_t width = text_shape()[0]; width >= 0) return {size, width};
  const auto tokens = [&](int64_t i, Tokens& out) { tokenize(texts[static_cast<size_t>(i)], out); };
  return {size, rows(size, tokens).width};
}

at::Tensor LookupLayer::transform(std::span<const std::string_view> texts) const {
  const auto size = static_cast<int64_t>(texts.size());
  const auto tokens = [&](int64_t i, Tokens& out) { tokenize(texts[static_cast<size_t>(i)], out); };
  return rows(size, tokens).dense();
}

DTensor LookupLayer::transform(std::span<const std::string_view> texts,
                               const Layout& layout) const {
  const auto size = static_cast<int64_t>(texts.size());
  const int64_t width = text_shape()[0];
  return with_error_location([&] {
    // Another process may hold the longest sequence.
    const Interval interval = width < 0 ? Interval{0, size} : local_rows(size, width, layout);
    const TextRows local = rows(interval.size(), [&](int64_t i, Tokens& out) {
      tokenize(texts[static_cast<size_t>(interval.lo + i)], out);
    });
    std::vector<int64_t> numbers(texts.size());
    std::iota(numbers.begin(), numbers.end(), -interval.lo);
    return local.placed(numbers, layout);
  });
}

std::shared_ptr<const Dataset> LookupLayer::dataset(const TextDataHandle& texts,
                                                    const TextPassOptions& options) const {
  TextRows all = rows(
      texts->size(), [&](int64_t i, Tokens& out) { tokenize(texts->text(i), out); },
      options.progress);
  return std::make_shared<TextDataset>(std::move(all), texts->labels(), texts->name());
}

void LookupLayer::count(int64_t size, const TokensAt& tokens, const TextProgress& progress) {
  if (lookup_.from_options()) {
    throw StateError(where(), "adapt() is for a layer without a vocabulary",
                     "options that give one", "leave it out, or call set_vocabulary()");
  }
  // Never shrinks: earlier entries hold counts.
  counts_.resize(std::max(counts_.size(), static_cast<size_t>(threads_for(texts_per_pass))));
  std::vector<Tokens> scratch(counts_.size());
  const auto work = [&](size_t thread, Interval interval) {
    for (int64_t i = interval.lo; i < interval.hi; ++i) {
      tokens(i, scratch[thread]);
      counts_[thread].start_document();
      for_each_token(scratch[thread], [&](std::string_view token) { counts_[thread].add(token); });
    }
  };
  with_error_location([&] { for_each_pass(size, progress, work, [](size_t) {}); });
}

void LookupLayer::update_state(const TextDataHandle& texts, const TextPassOptions& options) {
  count(
      texts->size(), [&](int64_t i, Tokens& out) { tokenize(texts->text(i), out); },
      options.progress);
}

void LookupLayer::finalize_state() {
  TokenCounts all;
  for (const TokenCounts& counts : counts_) all.merge(counts);
  counts_.clear();
  with_error_location([&] { lookup_.learn(all); });
}

void LookupLayer::adapt(const TextDataHandle& texts, const TextPassOptions& options) {
  reset_state();
  update_state(texts, options);
  finalize_state();
}

void LookupLayer::adapt(const TextStream& stream) {
  reset_state();
  while (auto texts = stream()) update_state(TextDataHandle(std::move(*texts)));
  finalize_state();
}

void LookupLayer::set_vocabulary(const std::vector<std::string>& tokens,
                                 const std::vector<double>& weights) {
  with_error_location([&] { lookup_.set_vocabulary(tokens, weights); });
}

LayerAssets LookupLayer::assets() const {
  if (!ready() || lookup_.in_config()) return {};
  return vocabulary_files({lookup_.vocabulary(), lookup_.idf_weights()});
}

void LookupLayer::load_assets(const LayerAssets& assets) {
  if (assets.empty() || lookup_.in_config()) return Layer::load_assets(assets);
  with_error_location([&] {
    const VocabularyFiles read = read_vocabulary_files(assets);
    lookup_.set_vocabulary(read.tokens, {read.idf_weights.begin(), read.idf_weights.end()});
  });
}

}  // namespace tessera::detail
