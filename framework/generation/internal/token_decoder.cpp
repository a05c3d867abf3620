#include <tessera/framework/generation/internal/token_decoder.hpp>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/tensor/create.hpp>

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
    if (layouts.pipeline()) {
      throw ConfigError(model_text(model), "a model is continued without stages",
                        describe(*layouts.pipeline()),
                        "compile it with layouts without a pipeline");
    }
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

}  // namespace

TokenDecoder::TokenDecoder(const ModelHandle& model, std::vector<TokenIds> rows,
                           const DecoderOptions& options)
    : model_(model), layouts_(layouts_of(model)), rows_(std::move(rows)), options_(options) {
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

void TokenDecoder::call(const Columns& columns, const CallContext& context,
                        at::Tensor& logits) const {
  const auto rows = std::ssize(rows_);
  at::Tensor tokens = at::tensor(columns.tokens).reshape({rows, columns.count});
  const std::vector<DTensor> outputs =
      model_.outputs({pack(std::move(tokens), layouts_.data_layout("x", 2))}, context);
  if (outputs.size() != 1 || outputs[0].rank() != 3 || outputs[0].size(0) != rows ||
      outputs[0].size(1) != columns.count) {
    throw ConfigError(model_text(model_),
                      "the model has one output, the logits (batch, T, vocabulary) of T tokens",
                      outputs.size() == 1
                          ? to_string(outputs[0].shape()) + " for T = " + str(columns.count)
                          : str(outputs.size(), " outputs"),
                      "return logits for each step");
  }
  std::vector<int64_t> last;
  for (const int64_t column : columns.last) last.push_back(std::max<int64_t>(column, 0));
  if (std::all_of(columns.last.begin(), columns.last.end(), [](int64_t c) { return c < 0; }))
    return;
  DTensor chosen = outputs[0];
  if (columns.count > 1) {
    const Layout batch = Layout::from_axes(chosen.mesh(), {chosen.layout().axis(0), {}, {}});
    chosen = ops::take_along_axis(chosen, pack(at::tensor(last).reshape({rows, 1, 1}), batch), 1);
  }
  at::Tensor all = chosen.full().select(1, 0).to(at::kDouble);
  if (options_.vocabulary_size) {
    all = all.narrow(1, 0, std::min(*options_.vocabulary_size, all.size(1)));
  }
  if (!logits.defined()) logits = at::empty(all.sizes(), all.options());
  for (int64_t row = 0; row < rows; ++row) {
    if (columns.last[size_t(row)] >= 0) logits[row].copy_(all[row]);
  }
}

bool TokenDecoder::exceeds_context() const {
  return options_.max_context && longest(rows_) > *options_.max_context;
}

at::Tensor TokenDecoder::uncached_logits() const {
  // Rows are padded on the right, which causal models do not see, to one length beyond the context.
  const int64_t columns = exceeds_context() ? *options_.max_context : longest(rows_);
  Columns all{.count = columns};
  for (const TokenIds& row : rows_) {
    const int64_t own = std::min(std::ssize(row), columns);
    all.tokens.insert(all.tokens.end(), row.end() - own, row.end());
    all.tokens.resize(all.tokens.size() + size_t(columns - own));
    all.last.push_back(own - 1);
  }
  at::Tensor logits;
  call(all, {}, logits);
  return logits;
}

at::Tensor TokenDecoder::next_logits() {
  if (exceeds_context()) return uncached_logits();
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
    call(columns, {.cache = cache_}, logits);
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
