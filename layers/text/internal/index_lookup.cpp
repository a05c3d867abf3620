#include <tessera/layers/text/internal/index_lookup.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/layers/text/internal/farm_hash.hpp>

namespace tessera::detail {
namespace {

constexpr int64_t max_tokens = INT32_MAX;
constexpr int64_t max_oov_indices = 1 << 20;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Whether the text survives a round trip through JSON.
bool fits_json(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0 || text[0] == '\0') return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

TokenEncoding token_encoding(const std::string& name) {
  const std::vector<std::string> names = {"int", "one_hot", "multi_hot", "count", "tf_idf"};
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<TokenEncoding>(found - names.begin());
  throw ConfigError("output_mode", "one of " + quoted_list(names), in_quotes(name),
                    suggestion(name, names));
}

float idf_weight(int64_t documents, int64_t with_token) {
  const double share = static_cast<double>(documents) / (1 + static_cast<double>(with_token));
  return static_cast<float>(std::log(1 + share));
}

IndexLookup::IndexLookup(IndexLookupOptions options)
    : options_(std::move(options)),
      output_(token_encoding(options_.output_mode)),
      mask_index_(options_.mask_token && output_ == TokenEncoding::index ? 0 : masked),
      token_start_(oov_start() + options_.num_oov_indices) {
  check_options();
  if (options_.vocabulary.empty()) return;
  set_vocabulary(options_.vocabulary, options_.idf_weights);
  from_options_ = true;
}

void IndexLookup::check_options() const {
  if (options_.num_oov_indices < 0 || options_.num_oov_indices > max_oov_indices) {
    throw ConfigError("num_oov_indices", str("0 to ", max_oov_indices),
                      str(options_.num_oov_indices), "leave it out for 1");
  }
  if (options_.max_tokens &&
      (*options_.max_tokens <= token_start() || *options_.max_tokens > max_tokens)) {
    throw ConfigError("max_tokens",
                      str("more than the ", token_start(),
                          " indices of special tokens, and at most ", max_tokens),
                      str(*options_.max_tokens), "leave it out for no limit");
  }
  if (options_.pad_to_max_tokens && !options_.max_tokens) {
    throw ConfigError("pad_to_max_tokens", "max_tokens is given too", "none", "give max_tokens");
  }
  if (options_.invert && output_ != TokenEncoding::index) {
    throw ConfigError("output_mode", "\"int\" where `invert` is true",
                      in_quotes(options_.output_mode), "leave out output_mode");
  }
  if (options_.vocabulary.empty() && !options_.idf_weights.empty()) {
    throw ConfigError("idf_weights", "given together with a vocabulary",
                      str(options_.idf_weights.size(), " weights and no vocabulary"),
                      "give `vocabulary` too, or neither and call adapt()");
  }
}

bool IndexLookup::in_config() const {
  return from_options_ &&
         std::all_of(options_.vocabulary.begin(), options_.vocabulary.end(), fits_json);
}

int64_t IndexLookup::depth() const {
  if (options_.pad_to_max_tokens) return *options_.max_tokens;
  return has_vocabulary() ? vocabulary_size() : -1;
}

std::vector<std::string> IndexLookup::special_tokens() const {
  std::vector<std::string> tokens(static_cast<size_t>(token_start()), options_.oov_token);
  if (mask_index_ == 0) tokens[0] = *options_.mask_token;
  return tokens;
}

std::vector<std::string> IndexLookup::vocabulary(bool include_special_tokens) const {
  std::vector<std::string> tokens;
  if (include_special_tokens) tokens = special_tokens();
  for (int64_t i = 0; i < table_.size(); ++i) tokens.emplace_back(table_[i]);
  return tokens;
}

void IndexLookup::check_tokens(const std::vector<std::string>& all, int64_t first) const {
  const int64_t size = static_cast<int64_t>(all.size()) - first;
  if (size == 0) {
    throw ConfigError("vocabulary", "at least one token that is not special", "none",
                      "give the tokens");
  }
  if (options_.max_tokens && token_start() + size > *options_.max_tokens) {
    throw ConfigError("vocabulary", str("at most max_tokens = ", *options_.max_tokens, " indices"),
                      str(token_start() + size), "raise max_tokens or give fewer tokens");
  }
  const auto check_reserved = [&](const std::string& reserved, const std::string& kind) {
    const auto it = std::find(all.begin() + first, all.end(), reserved);
    if (it == all.end()) return;
    throw ConfigError("vocabulary",
                      str("special tokens come first, as ", quoted_list(special_tokens())),
                      str(kind, " ", in_quotes(reserved), " at index ", it - all.begin()),
                      "leave out all special tokens, or give them first");
  };
  if (options_.mask_token) check_reserved(*options_.mask_token, "mask_token");
  if (options_.invert) check_reserved(options_.oov_token, "oov_token");
}

void IndexLookup::set_vocabulary(const std::vector<std::string>& tokens,
                                 const std::vector<double>& weights) {
  const std::vector<std::string> special = special_tokens();
  const bool has_special =
      tokens.size() >= special.size() && std::equal(special.begin(), special.end(), tokens.begin());
  const int64_t first = has_special ? token_start() : 0;
  check_tokens(tokens, first);
  const size_t needed = output_ == TokenEncoding::tf_idf ? tokens.size() : 0;
  if (weights.size() != needed) {
    throw ConfigError("idf_weights",
                      needed == 0 ? "none unless output_mode is \"tf_idf\""
                                  : str("one for each of the ", needed, " tokens"),
                      str(weights.size()), needed == 0 ? "leave them out" : "give as many");
  }
  for (const double weight : weights) {
    if (std::isfinite(static_cast<float>(weight))) continue;
    throw ConfigError("idf_weights", "finite float32 numbers", str(weight), "give others");
  }
  TokenTable table;
  for (size_t i = static_cast<size_t>(first); i < tokens.size(); ++i) {
    if (table.insert(tokens[i]) == static_cast<int64_t>(i) - first) continue;
    throw ConfigError("vocabulary", "each token once", in_quotes(tokens[i]) + " twice",
                      "leave out the second");
  }
  table_ = std::move(table);
  from_options_ = false;
  idf_.clear();
  if (weights.empty()) return;
  if (!has_special) idf_.assign(special.size(), static_cast<float>(mean(weights)));
  for (const double weight : weights) idf_.push_back(static_cast<float>(weight));
}

void IndexLookup::learn(const TokenCounts& counts) {
  std::vector<std::string> excluded = {options_.oov_token};
  if (options_.mask_token) excluded.push_back(*options_.mask_token);
  const auto learned = counts.top_by_count(
      options_.max_tokens ? *options_.max_tokens - token_start() : -1, excluded);
  std::vector<std::string> tokens;
  std::vector<double> weights;
  for (const TokenCount& token : learned) {
    tokens.push_back(token.token);
    if (output_ != TokenEncoding::tf_idf) continue;
    weights.push_back(idf_weight(counts.documents(), token.documents));
  }
  if (tokens.empty()) {
    throw ConfigError("adapt", "texts with at least one token",
                      str(counts.documents(), " texts without any"), "give it other texts");
  }
  set_vocabulary(tokens, weights);
}

int64_t IndexLookup::unknown_index(std::string_view token) const {
  if (options_.num_oov_indices == 1) return oov_start();
  if (options_.num_oov_indices == 0) {
    throw ConfigError("lookup", "tokens of the vocabulary, as num_oov_indices is 0",
                      in_quotes(token), "set num_oov_indices to 1");
  }
  const auto buckets = static_cast<uint64_t>(options_.num_oov_indices);
  return oov_start() + static_cast<int64_t>(fingerprint64(token) % buckets);
}

std::string IndexLookup::token(int64_t index) const {
  if (index == 0 && mask_index_ == 0) return *options_.mask_token;
  const bool known = index >= token_start() && index < vocabulary_size();
  return known ? std::string(table_[index - token_start()]) : options_.oov_token;
}

}  // namespace tessera::detail
