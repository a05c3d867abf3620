#include <tessera/framework/text/tokenizer.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/text/internal/tokenizer_pipeline.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr int64_t max_sequence = int64_t{1} << 31;
constexpr uint64_t max_tokenizer_bytes = uint64_t{256} << 20;

void check_word(const std::string& option, const std::string& value,
                const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), value) != words.end()) return;
  throw ConfigError(option, "one of " + quoted_list(words), in_quotes(value),
                    suggestion(value, words));
}

void check_range(const std::string& option, int64_t value, int64_t least) {
  if (value >= least && value < max_sequence) return;
  throw ConfigError(option, str("a number from ", least, " to ", max_sequence - 1), str(value),
                    "choose another number");
}

/// Drops tokens at one end of a sequence.
void cut_to(std::vector<int32_t>& ids, int64_t length, bool at_left) {
  const auto size = static_cast<int64_t>(ids.size());
  if (size <= length) return;
  if (at_left) {
    ids.erase(ids.begin(), ids.end() - length);
  } else {
    ids.resize(static_cast<size_t>(length));
  }
}

/// Shortens one of two texts, as "only_first" and "only_second" say.
void cut_one(std::vector<int32_t>& ids, int64_t excess, const Truncation& truncation) {
  const auto size = static_cast<int64_t>(ids.size());
  if (size <= excess) {
    throw ConfigError("truncation", "a text that is longer than what exceeds max_length",
                      str(size, " tokens, of which ", excess, " exceed"),
                      "use the strategy \"longest_first\", or a longer max_length");
  }
  cut_to(ids, size - excess, truncation.direction == "left");
}

/// Shortens the longer of two texts first, as Hugging Face does.
void cut_longest(std::vector<int32_t>& first, std::vector<int32_t>& second, int64_t max_length,
                 bool at_left) {
  auto shorter = static_cast<int64_t>(std::min(first.size(), second.size()));
  auto longer = shorter > max_length ? shorter : std::max(shorter, max_length - shorter);
  if (shorter + longer > max_length) {
    shorter = max_length / 2;
    longer = shorter + max_length % 2;
  }
  const bool swapped = first.size() > second.size();
  cut_to(first, swapped ? longer : shorter, at_left);
  cut_to(second, swapped ? shorter : longer, at_left);
}

/// Shortens texts to `max_length` tokens in total.
void cut(std::vector<int32_t>& first, std::vector<int32_t>* second, int64_t max_length,
         const Truncation& truncation) {
  const bool at_left = truncation.direction == "left";
  const size_t second_size = second ? second->size() : 0;
  const int64_t excess = static_cast<int64_t>(first.size() + second_size) - max_length;
  if (excess <= 0) return;
  if (max_length == 0) {
    first.clear();
    if (second) second->clear();
  } else if (truncation.strategy == "only_first") {
    cut_one(first, excess, truncation);
  } else if (truncation.strategy == "only_second") {
    if (!second) {
      throw ConfigError("truncation", "two texts for the strategy \"only_second\"", "one text",
                        "use the strategy \"longest_first\"");
    }
    cut_one(*second, excess, truncation);
  } else if (second) {
    cut_longest(first, *second, max_length, at_left);
  } else {
    cut_to(first, max_length, at_left);
  }
}

void pad_list(std::vector<int32_t>& list, size_t length, int32_t value, bool at_left) {
  if (list.size() >= length) return;
  list.insert(at_left ? list.begin() : list.end(), length - list.size(), value);
}

/// Calls work(i) for each i below `count` on several threads; rethrows the first error.
template <class Work>
void for_each_on_threads(size_t count, int64_t threads, const Work& work) {
  constexpr size_t texts_per_block = 8;
  const size_t blocks = (count + texts_per_block - 1) / texts_per_block;
  if (threads <= 0) threads = std::max<int64_t>(1, std::thread::hardware_concurrency());
  std::atomic<size_t> next = 0;
  std::exception_ptr error;
  std::mutex mutex;
  const auto run = [&] {
    try {
      for (size_t block = next++; block < blocks; block = next++) {
        const size_t begin = block * texts_per_block;
        for (size_t i = begin; i < std::min(count, begin + texts_per_block); ++i) work(i);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      next = blocks;
    }
  };
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < std::min(blocks, static_cast<size_t>(threads)); ++i) {
      others.emplace_back(run);
    }
    run();
  }
  if (error) std::rethrow_exception(error);
}

/// Returns the file in a folder that holds its tokenizer; the path itself if it is a file.
std::string tokenizer_file(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  const auto file = [&](const char* name) { return (fs::path(path) / name).string(); };
  for (const char* name :
       {"tokenizer.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model"}) {
    if (exists(file(name))) return file(name);
  }
  return "";
}

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const TokenizerPipeline> pipeline)
    : pipeline_(std::move(pipeline)) {
  set_truncation(pipeline_->truncation());
  set_padding(pipeline_->padding());
}

Tokenizer Tokenizer::from_json(std::string_view text, const std::string& where) {
  return Tokenizer(pipeline_from_json(std::string(text), where));
}

Tokenizer load_tokenizer(const std::string& path) {
  const std::string file = tokenizer_file(path);
  if (file.ends_with(".model")) return Tokenizer(load_sentence_piece(file));
  if (!file.empty()) return Tokenizer::from_json(read_file(file, max_tokenizer_bytes), file);
  const std::string made = tokenizer_json_of_folder(path);
  if (made.empty()) {
    throw FileError(path,
                    "a folder with tokenizer.json, tokenizer.model, vocab.txt, or vocab.json and "
                    "merges.txt",
                    "none of them", "pass the folder of a model of Hugging Face");
  }
  return Tokenizer::from_json(made, path);
}

void Tokenizer::set_truncation(std::optional<Truncation> truncation) {
  if (truncation) {
    check_range("truncation.max_length", truncation->max_length, 0);
    check_word("truncation.strategy", truncation->strategy,
               {"longest_first", "only_first", "only_second"});
    check_word("truncation.direction", truncation->direction, {"right", "left"});
  }
  truncation_ = std::move(truncation);
}

void Tokenizer::set_padding(std::optional<Padding> padding) {
  if (padding) {
    if (padding->length) check_range("padding.length", *padding->length, 0);
    check_range("padding.multiple_of", padding->multiple_of, 1);
    check_word("padding.direction", padding->direction, {"right", "left"});
  }
  padding_ = std::move(padding);
}

namespace {

/// Encodes one text, or two, without padding.
Encoding encode_texts(const TokenizerPipeline& pipeline, std::string_view first,
                      const std::string_view* second, const std::optional<Truncation>& truncation,
                      bool adds_special_tokens) {
  std::vector<int32_t> ids[2];
  pipeline.append_tokens(first, ids[0]);
  if (second) pipeline.append_tokens(*second, ids[1]);
  const PostProcessor& processor = pipeline.post_processor();
  const bool is_pair = second != nullptr;
  if (truncation) {
    const int64_t special = adds_special_tokens ? processor.special_tokens(is_pair) : 0;
    cut(ids[0], is_pair ? &ids[1] : nullptr, std::max<int64_t>(truncation->max_length - special, 0),
        *truncation);
  }
  Encoding encoding;
  for (const TemplatePart& part : is_pair ? processor.pair : processor.single) {
    const bool special = part.text < 0;
    if (special && !adds_special_tokens) continue;
    const std::vector<int32_t>& added = special ? part.ids : ids[part.text];
    encoding.ids.insert(encoding.ids.end(), added.begin(), added.end());
    encoding.type_ids.resize(encoding.ids.size(), part.type_id);
    encoding.special_tokens_mask.resize(encoding.ids.size(), special ? 1 : 0);
  }
  encoding.attention_mask.assign(encoding.ids.size(), 1);
  return encoding;
}

}  // namespace

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  Encoding encoding =
      encode_texts(*pipeline_, text, nullptr, truncation_, options.add_special_tokens);
  pad_all(std::span(&encoding, 1));
  return encoding;
}

Encoding Tokenizer::encode(std::string_view first, std::string_view second,
                           const EncodeOptions& options) const {
  Encoding encoding =
      encode_texts(*pipeline_, first, &second, truncation_, options.add_special_tokens);
  pad_all(std::span(&encoding, 1));
  return encoding;
}

std::vector<Encoding> Tokenizer::encode_batch(std::span<const std::string_view> texts,
                                              const EncodeOptions& options) const {
  std::vector<Encoding> encodings(texts.size());
  for_each_on_threads(texts.size(), options.threads, [&](size_t i) {
    encodings[i] =
        encode_texts(*pipeline_, texts[i], nullptr, truncation_, options.add_special_tokens);
  });
  pad_all(encodings);
  return encodings;
}

std::vector<Encoding> Tokenizer::encode_batch(const std::vector<std::string>& texts,
                                              const EncodeOptions& options) const {
  return encode_batch(std::vector<std::string_view>(texts.begin(), texts.end()), options);
}

void Tokenizer::encode_ids(std::string_view text, std::vector<int32_t>& ids,
                           const EncodeOptions& options) const {
  ids = encode_texts(*pipeline_, text, nullptr, truncation_, options.add_special_tokens).ids;
}

void Tokenizer::pad_all(std::span<Encoding> encodings) const {
  if (!padding_) return;
  size_t length = 0;
  for (const Encoding& encoding : encodings) length = std::max(length, encoding.ids.size());
  if (padding_->length) length = static_cast<size_t>(*padding_->length);
  const auto multiple = static_cast<size_t>(padding_->multiple_of);
  length = (length + multiple - 1) / multiple * multiple;
  const bool at_left = padding_->direction == "left";
  for (Encoding& encoding : encodings) {
    pad_list(encoding.ids, length, padding_->pad_id, at_left);
    pad_list(encoding.type_ids, length, padding_->pad_type_id, at_left);
    pad_list(encoding.attention_mask, length, 0, at_left);
    pad_list(encoding.special_tokens_mask, length, 1, at_left);
  }
}

std::string Tokenizer::decode(std::span<const int32_t> ids, const DecodeOptions& options) const {
  return pipeline_->decode(ids, options.skip_special_tokens);
}

int64_t Tokenizer::vocabulary_size() const { return pipeline_->vocabulary_size(); }

std::optional<int32_t> Tokenizer::token_id(std::string_view token) const {
  return pipeline_->token_id(token);
}

std::optional<std::string> Tokenizer::token(int32_t id) const { return pipeline_->token(id); }

const std::string& Tokenizer::to_json() const {
  if (!pipeline_->json_text().empty()) return pipeline_->json_text();
  throw StateError("Tokenizer", "a tokenizer of a tokenizer.json", "one of SentencePiece",
                   "convert the .model file to tokenizer.json");
}

}  // namespace tessera
