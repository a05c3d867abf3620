#include <tessera/framework/generation/internal/token_decoder.hpp>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/data/tensor_dataset.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/deferred_value.hpp>

namespace tessera {

using namespace detail;

namespace {

std::string model_text(const ModelHandle& model) {
  return "generate, " + model->class_name() +
         (model->name().empty() ? std::string() : " " + model->name());
}

/// Returns the layouts of compile(), or of the mesh that the weights or new values are on.
LayoutMap layouts_of(const ModelHandle& model) {
  if (model->compiled()) {
    const CompileOptions options = model->compile_options();
    LayoutMap layouts = options.layouts;
    if (!layouts.defined() && options.mesh.defined()) layouts = LayoutMap(options.mesh);
    if (layouts.defined()) {
      layouts.set_data_names(model->input_names(), model->output_names());
      return layouts;
    }
  }
  const std::vector<Variable> weights = model.weights();
  return LayoutMap(weights.empty() ? default_mesh() : weights.front().layout().mesh());
}

int64_t longest(const std::vector<TokenIds>& rows) {
  size_t most = 0;
  for (const TokenIds& row : rows) most = std::max(most, row.size());
  return static_cast<int64_t>(most);
}

[[noreturn]] void refuse_outputs(const ModelHandle& model, const std::string& received) {
  throw ConfigError(model_text(model),
                    "the model has one output, the logits (batch, T, vocabulary) of T tokens",
                    received, "return logits for each step");
}

void check_logits(const ModelHandle& model, const Shape& logits, int64_t rows, int64_t steps) {
  if (logits.size() == 3 && logits[0] == rows && logits[1] == steps) return;
  refuse_outputs(model, to_string(logits) + " for T = " + str(steps));
}

/// Returns the logits (rows, vocabulary) of the tokens that are generated.
at::Tensor known_tokens(const at::Tensor& logits, const DecoderOptions& options) {
  const int64_t all = logits.size(1);
  return logits.narrow(1, 0, std::min(options.vocabulary_size.value_or(all), all));
}

}  // namespace

TokenDecoder::TokenDecoder(const ModelHandle& model, std::vector<TokenIds> rows,
                           const DecoderOptions& options)
    : model_(model),
      calls_(model.model()),
      layouts_(layouts_of(model)),
      rows_(std::move(rows)),
      options_(options) {
  if (rows_.empty()) {
    throw ConfigError("generate", "there is at least one prompt", "none", "pass a prompt");
  }
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (!rows_[row].empty()) continue;
    throw ConfigError("generate", "a prompt has at least one token", str("none in prompt ", row),
                      "begin with a token, such as the one that begins a text");
  }
  // The last token is not cached.
  const int64_t needed = std::min(longest(rows_) + options.max_new_tokens - 1,
                                  options.max_context.value_or(INT64_MAX));
  // Powers of two, so that texts of many lengths have the same plans.
  const auto capacity = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(needed, 16)));
  cache_ = std::make_shared<KeyValueCache>(static_cast<int64_t>(capacity));
  cached_.resize(rows_.size());
}

std::vector<DTensor> TokenDecoder::outputs(const DTensor& tokens,
                                           const std::shared_ptr<KeyValueCache>& cache) const {
  const auto call = [&] {
    std::vector<DTensor> all = model_.outputs({tokens}, {.cache = cache});
    for (const DTensor& each : all) DeferredValue::compute_now(each);
    return all;
  };
  // Calls on prompts differ in their lengths, and each is made once for a text. What a tape holds
  // must not be written in place.
  if (!cache || cache->empty() || tokens.size(1) > 1 || recording()) return call();
  Batch batch;
  batch.x = {tokens};
  batch.rows = tokens.size(0);
  for (DTensor& each : cache->call_inputs(tokens)) batch.x.push_back(std::move(each));
  return calls_.run(batch, call);
}

void TokenDecoder::call(const Columns& columns, const std::shared_ptr<KeyValueCache>& cache,
                        at::Tensor& logits) const {
  const auto rows = std::ssize(rows_);
  at::Tensor tokens = at::tensor(columns.tokens).reshape({rows, columns.count});
  const std::vector<DTensor> all =
      outputs(pack(std::move(tokens), layouts_.data_layout("x", 2)), cache);
  if (all.size() != 1) refuse_outputs(model_, str(all.size(), " outputs"));
  check_logits(model_, all[0].shape(), rows, columns.count);
  std::vector<int64_t> last;
  for (const int64_t column : columns.last) last.push_back(std::max<int64_t>(column, 0));
  if (std::all_of(columns.last.begin(), columns.last.end(), [](int64_t c) { return c < 0; }))
    return;
  DTensor chosen = all[0];
  if (columns.count > 1) {
    const Layout batch = Layout::from_axes(chosen.mesh(), {chosen.layout().axis(0), {}, {}});
    chosen = ops::take_along_axis(chosen, pack(at::tensor(last).reshape({rows, 1, 1}), batch), 1);
  }
  const at::Tensor known = known_tokens(chosen.full().select(1, 0).to(at::kDouble), options_);
  if (std::all_of(columns.last.begin(), columns.last.end(), [](int64_t c) { return c >= 0; })) {
    logits = known.contiguous();
    return;
  }
  if (!logits.defined()) logits = at::empty(known.sizes(), known.options());
  for (int64_t row = 0; row < rows; ++row) {
    if (columns.last[size_t(row)] >= 0) logits[row].copy_(known[row]);
  }
}

bool TokenDecoder::exceeds_context() const {
  return options_.max_context && longest(rows_) > *options_.max_context;
}

TokenDecoder::Columns TokenDecoder::last_columns(int64_t count) const {
  Columns columns{.count = count};
  for (const TokenIds& row : rows_) {
    const int64_t own = std::min(std::ssize(row), count);
    columns.tokens.insert(columns.tokens.end(), row.end() - own, row.end());
    columns.tokens.resize(columns.tokens.size() + size_t(count - own));
    columns.last.push_back(own - 1);
  }
  return columns;
}

/// Returns the logits of a prediction in stages. Rows have one length, since each other one is
/// planned anew; causal models do not see the padding.
at::Tensor TokenDecoder::predicted_logits() const {
  const Columns columns = last_columns(options_.max_context.value_or(cache_->capacity()));
  const auto rows = std::ssize(rows_);
  const at::Tensor tokens = at::tensor(columns.tokens).reshape({rows, columns.count});
  const at::Tensor all =
      model_.predict(TensorDataset(Examples{.x = {tokens}}), {.batch_size = rows, .verbose = 0});
  check_logits(model_, all.sizes().vec(), rows, columns.count);
  const at::Tensor chosen =
      all.take_along_dim(at::tensor(columns.last).reshape({rows, 1, 1}), 1).select(1, 0);
  return known_tokens(chosen.to(at::kDouble), options_);
}

at::Tensor TokenDecoder::uncached_logits() const {
  if (layouts_.pipeline()) return predicted_logits();
  // Rows have one length beyond the context.
  at::Tensor logits;
  call(last_columns(exceeds_context() ? *options_.max_context : longest(rows_)), nullptr, logits);
  return logits;
}

at::Tensor TokenDecoder::next_logits() {
  if (exceeds_context() || layouts_.pipeline()) return uncached_logits();
  // A row without new tokens is called on its last one again.
  std::vector<int64_t> first;
  int64_t count = 0;
  for (size_t row = 0; row < rows_.size(); ++row) {
    const auto tokens = std::ssize(rows_[row]);
    first.push_back(std::min(cached_[row], tokens - 1));
    count = std::max(count, tokens - first.back());
    cached_[row] = tokens;
  }
  at::Tensor logits;
  for (int64_t done = 0; done < count;) {
    const auto some = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count - done)));
    Columns columns{.count = some};
    std::vector<int64_t> lengths;
    for (size_t row = 0; row < rows_.size(); ++row) {
      const TokenIds& tokens = rows_[row];
      const int64_t begin = first[row] + done, last = std::ssize(tokens) - 1 - begin;
      // A row that has no more tokens repeats its last one behind itself, where it does no harm.
      lengths.push_back(begin);
      columns.last.push_back(last < some ? std::max<int64_t>(last, -1) : -1);
      for (int64_t step = begin; step < begin + some; ++step) {
        columns.tokens.push_back(tokens[size_t(std::min(step, std::ssize(tokens) - 1))]);
      }
    }
    cache_->set_lengths(lengths);
    call(columns, cache_, logits);
    done += some;
  }
  return logits;
}

void TokenDecoder::select_rows(const std::vector<int64_t>& rows) {
  std::vector<TokenIds> chosen;
  std::vector<int64_t> cached;
  for (const int64_t row : rows) {
    chosen.push_back(rows_[size_t(row)]);
    cached.push_back(cached_[size_t(row)]);
  }
  rows_ = std::move(chosen);
  cached_ = std::move(cached);
  cache_->select_rows(rows);
}

namespace {

/// Returns by how much logits may differ between two ways to compute them, relative to the largest.
double rounding_of(at::ScalarType dtype) {
  if (dtype == at::kDouble) return 1e-6;
  return dtype == at::kFloat ? 1e-3 : 0.1;
}

/// Returns the first layer inside, depth first, of a class that looks at other steps and that has
/// not used the cache; empty if none is known.
std::string suspect(const Layer& layer, const KeyValueCache& cache) {
  static const std::vector<std::string> kinds = {"Attention",     "RNN",    "LSTM",      "GRU",
                                                 "Bidirectional", "Conv1D", "Pooling1D", "Flatten",
                                                 "Permute",       "Reshape"};
  for (const std::shared_ptr<Layer>& inner : layer.sublayers()) {
    const std::string name = inner->class_name();
    const bool looks = std::any_of(kinds.begin(), kinds.end(), [&](const std::string& kind) {
      return name.find(kind) != std::string::npos;
    });
    if (looks && !cache.has(*inner, "key")) return "the layer " + inner->path() + " (" + name + ")";
    if (std::string found = suspect(*inner, cache); !found.empty()) return found;
  }
  return "";
}

}  // namespace

void detail::check_continues(const ModelHandle& model, int64_t token) {
  TokenDecoder both(model, {{token, token > 0 ? token - 1 : 1}}, {});
  TokenDecoder one_by_one(model, {{token}}, {});
  const at::Tensor expected = both.uncached_logits();
  one_by_one.next_logits();
  one_by_one.append(0, both.rows()[0][1]);
  const at::Tensor actual = one_by_one.next_logits();
  const double scale = expected.abs().max().item<double>();
  const double difference = (actual - expected).abs().max().item<double>();
  if (difference <= rounding_of(model->dtype_policy().compute) * scale) return;
  const std::string layer = suspect(model.model(), one_by_one.cache());
  throw ConfigError(model_text(model),
                    "the logits of a token are the same whether earlier tokens are passed again or "
                    "are in a KeyValueCache",
                    str("logits of up to ", scale, " that differ by ", difference,
                        layer.empty() ? "" : ", probably by ", layer),
                    "make attention causal (use_causal_mask), and use no layer that looks at other "
                    "steps without the cache");
}

}  // namespace tessera
