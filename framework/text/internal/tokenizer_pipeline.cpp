#include <tessera/framework/text/internal/tokenizer_pipeline.hpp>

#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/text/internal/unicode.hpp>

namespace tessera::detail {
namespace {

/// Returns the project's name of a word that Hugging Face writes as "LongestFirst".
std::string snake_case(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !out.empty()) out += '_';
    out += upper ? static_cast<char>(c + 32) : c;
  }
  return out;
}

std::optional<Truncation> truncation_of(const Json& json, const JsonPath& path) {
  if (json.is_null()) return std::nullopt;
  JsonObject object(json, path);
  Truncation truncation;
  truncation.max_length = object.take<int64_t>("max_length");
  truncation.strategy = snake_case(object.take_or<std::string>("strategy", "LongestFirst"));
  truncation.direction = snake_case(object.take_or<std::string>("direction", "Right"));
  // Parts that overlap by this stride are not made: only the first one is.
  object.take_or<int64_t>("stride", 0);
  object.finish();
  return truncation;
}

std::optional<Padding> padding_of(const Json& json, const JsonPath& path) {
  if (json.is_null()) return std::nullopt;
  JsonObject object(json, path);
  Padding padding;
  const auto strategy = object.take<Json>("strategy");
  const JsonPath strategy_path = path.key("strategy");
  if (strategy.is_object()) {
    JsonObject fixed(strategy, strategy_path);
    padding.length = fixed.take<int64_t>("Fixed");
    fixed.finish();
  } else if (strategy != "BatchLongest") {
    json_fail(strategy, strategy_path, "\"BatchLongest\" or {\"Fixed\": length}");
  }
  padding.direction = snake_case(object.take_or<std::string>("direction", "Right"));
  // Hugging Face ignores 0.
  padding.multiple_of = std::max<int64_t>(object.take_or<int64_t>("pad_to_multiple_of", 1), 1);
  padding.pad_id = object.take_or<int32_t>("pad_id", 0);
  padding.pad_type_id = object.take_or<int32_t>("pad_type_id", 0);
  object.take_or<std::string>("pad_token", "");
  object.finish();
  return padding;
}

}  // namespace

/// The scratch of one call, returned to the idle ones at its end.
class JsonPipeline::ScratchLoan {
 public:
  explicit ScratchLoan(const JsonPipeline& owner) : owner_(owner) {
    {
      const std::lock_guard lock(owner_.mutex_);
      if (!owner_.idle_.empty()) {
        scratch_ = std::move(owner_.idle_.back());
        owner_.idle_.pop_back();
      }
    }
    if (!scratch_) scratch_ = std::make_unique<Scratch>();
  }
  ~ScratchLoan() {
    const std::lock_guard lock(owner_.mutex_);
    if (owner_.idle_.size() < owner_.idle_.capacity()) owner_.idle_.push_back(std::move(scratch_));
  }
  ScratchLoan(const ScratchLoan&) = delete;
  ScratchLoan& operator=(const ScratchLoan&) = delete;

  Scratch& operator*() const { return *scratch_; }

 private:
  const JsonPipeline& owner_;
  std::unique_ptr<Scratch> scratch_;
};

JsonPipeline::JsonPipeline(std::string text, const std::string& where) {
  constexpr size_t max_idle = 64;
  idle_.reserve(max_idle);
  const Json json = parse_json(text, where);
  const JsonPath root(where);
  if (!json.is_object()) json_fail(json, root, "an object");
  const auto part = [&](const std::string& key) -> const Json& {
    static const Json null;
    return json.contains(key) ? json[key] : null;
  };
  const std::vector<std::string> keys = {"version",        "truncation", "padding",
                                         "added_tokens",   "normalizer", "pre_tokenizer",
                                         "post_processor", "decoder",    "model"};
  for (const auto& [key, value] : json.items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    throw ConfigError(root.key(key).text(), "a known key", in_quotes(key), suggestion(key, keys));
  }
  normalizer_ = make_normalizer(part("normalizer"), root.key("normalizer"));
  pre_tokenizer_ = make_pre_tokenizer(part("pre_tokenizer"), root.key("pre_tokenizer"));
  model_ = make_token_model(part("model"), root.key("model"));
  model_->set_byte_level(pre_tokenizer_.byte_level && model_->reads_bytes());
  added_ = AddedTokens(part("added_tokens"), root.key("added_tokens"), model_->vocabulary(),
                       normalizer_);
  post_processor_ = make_post_processor(part("post_processor"), root.key("post_processor"));
  decoder_ = make_token_decoder(part("decoder"), root.key("decoder"));
  truncation_ = truncation_of(part("truncation"), root.key("truncation"));
  padding_ = padding_of(part("padding"), root.key("padding"));
  json_text_ = std::move(text);
}

void JsonPipeline::append_tokens(std::string_view text, std::vector<int32_t>& ids) const {
  std::string valid;
  if (!is_valid_utf8(text)) text = valid = valid_utf8(text);
  const ScratchLoan loan(*this);
  Scratch& scratch = *loan;
  added_.find(text, false, scratch.parts);
  for (const AddedTokens::Part& part : scratch.parts) {
    if (part.token >= 0) {
      ids.push_back(part.token);
    } else {
      append_part(text.substr(part.begin, part.end - part.begin), part.begin == 0, scratch, ids);
    }
  }
}

void JsonPipeline::append_part(std::string_view part, bool is_first, Scratch& scratch,
                               std::vector<int32_t>& ids) const {
  SplitText& split = scratch.split;
  split.text = part;
  if (normalizer_) normalizer_(split.text);
  added_.find(split.text, true, scratch.inner_parts);
  split.pieces.clear();
  for (const AddedTokens::Part& inner : scratch.inner_parts) {
    split.pieces.push_back({inner.begin, inner.end, is_first && inner.begin == 0, inner.token});
  }
  if (pre_tokenizer_.split) pre_tokenizer_.split(split);
  if (pre_tokenizer_.byte_level && !model_->reads_bytes()) to_byte_characters(split);
  const auto make = [&](std::string_view word, std::vector<int32_t>& out) {
    model_->tokenize(word, out);
  };
  for (const TextPiece& piece : split.pieces) {
    if (piece.token >= 0) {
      ids.push_back(piece.token);
    } else {
      scratch.words.append(
          std::string_view(split.text).substr(piece.begin, piece.end - piece.begin), ids, make);
    }
  }
}

const std::string* JsonPipeline::find_token(int32_t id) const {
  const std::string* token = added_.vocabulary().token(id);
  return token ? token : model_->vocabulary().token(id);
}

std::string JsonPipeline::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  for (const int32_t id : ids) {
    const std::string* token = find_token(id);
    if (token && !(skip_special_tokens && added_.is_special(id))) tokens.push_back(*token);
  }
  if (!decoder_) return join(tokens, " ");
  decoder_(tokens);
  return join(tokens, "");
}

int64_t JsonPipeline::vocabulary_size() const {
  return std::max(model_->vocabulary().end(), added_.vocabulary().end());
}

std::optional<int32_t> JsonPipeline::token_id(std::string_view token) const {
  const std::optional<int32_t> added = added_.vocabulary().id(token);
  return added ? added : model_->vocabulary().id(token);
}

std::optional<std::string> JsonPipeline::token(int32_t id) const {
  const std::string* token = find_token(id);
  return token ? std::optional(*token) : std::nullopt;
}

std::shared_ptr<const TokenizerPipeline> pipeline_from_json(std::string text,
                                                            const std::string& where) {
  return std::make_shared<const JsonPipeline>(std::move(text), where);
}

}  // namespace tessera::detail
