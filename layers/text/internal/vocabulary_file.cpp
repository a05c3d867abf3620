#include <tessera/layers/text/internal/vocabulary_file.hpp>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <system_error>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

constexpr const char* tokens_file = "vocabulary.txt";
constexpr const char* lengths_file = "vocabulary_lengths.txt";
constexpr const char* weights_file = "idf_weights.txt";

std::vector<std::string> lines(std::string_view text) {
  std::vector<std::string> result;
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    result.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  result.emplace_back(text);
  return result;
}

/// Parses a line that holds exactly one number.
template <class Number>
Number number_in(const std::string& line, const std::string& file) {
  Number number{};
  const char* end = line.data() + line.size();
  const auto [stop, error] = std::from_chars(line.data(), end, number);
  if (error == std::errc() && stop == end && std::isfinite(static_cast<double>(number))) {
    return number;
  }
  throw ConfigError(file, "one number on each line", in_quotes(line), "write the files again");
}

std::vector<std::string> split_by_lengths(std::string_view text, const std::string& lengths) {
  std::vector<std::string> tokens;
  size_t at = 0;
  for (const std::string& line : lines(lengths)) {
    const auto length = number_in<uint64_t>(line, lengths_file);
    const bool separated = tokens.empty() || (at < text.size() && text[at++] == '\n');
    if (!separated || length > text.size() - at) {
      throw ConfigError(lengths_file, str("lengths of the tokens in ", tokens_file),
                        str("token ", tokens.size(), " of ", length, " bytes"),
                        "write the files again");
    }
    tokens.emplace_back(text.substr(at, length));
    at += length;
  }
  if (at == text.size()) return tokens;
  throw ConfigError(tokens_file, str(at, " bytes, as ", lengths_file, " says"),
                    str(text.size(), " bytes"), "write the files again");
}

template <class Value>
std::string decimals(const std::vector<Value>& values) {
  std::string text;
  for (const Value value : values) {
    char digits[32];
    if (!text.empty()) text += '\n';
    text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  return text;
}

}  // namespace

std::map<std::string, std::string> vocabulary_files(const VocabularyFiles& vocabulary) {
  std::map<std::string, std::string> files;
  files[tokens_file] = join(vocabulary.tokens, "\n");
  bool line_ends = false;
  std::vector<uint64_t> lengths;
  for (const std::string& token : vocabulary.tokens) {
    lengths.push_back(token.size());
    line_ends = line_ends || token.find('\n') != token.npos;
  }
  if (line_ends) files[lengths_file] = decimals(lengths);
  if (!vocabulary.idf_weights.empty()) files[weights_file] = decimals(vocabulary.idf_weights);
  return files;
}

VocabularyFiles read_vocabulary_files(const std::map<std::string, std::string>& files) {
  for (const auto& file : files) {
    const std::string& name = file.first;
    if (name == tokens_file || name == lengths_file || name == weights_file) continue;
    throw ConfigError(one_line(name), "a file of a vocabulary", "another", "leave it out");
  }
  const auto text = files.find(tokens_file);
  if (text == files.end()) {
    throw ConfigError(tokens_file, "a file of this name", "none", "write the files again");
  }
  VocabularyFiles vocabulary;
  const auto lengths = files.find(lengths_file);
  vocabulary.tokens = lengths == files.end() ? lines(text->second)
                                             : split_by_lengths(text->second, lengths->second);
  const auto weights = files.find(weights_file);
  if (weights == files.end()) return vocabulary;
  for (const std::string& line : lines(weights->second)) {
    vocabulary.idf_weights.push_back(number_in<float>(line, weights_file));
  }
  if (vocabulary.idf_weights.size() == vocabulary.tokens.size()) return vocabulary;
  throw ConfigError(weights_file,
                    str("one weight for each of the ", vocabulary.tokens.size(), " tokens"),
                    str(vocabulary.idf_weights.size()), "write the files again");
}

}  // namespace tessera::detail
