#include <tessera/framework/text/internal/pre_tokenizer.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

#include <tessera/framework/text/internal/component_json.hpp>
#include <tessera/framework/text/internal/unicode.hpp>

namespace tessera::detail {
namespace {

/// Treatment of the matches at which a text is split.
enum class Delimiters { removed, isolated, with_previous, with_next, contiguous };

/// GPT-2's words: contractions, letters, numbers and others with a space before them, spaces.
constexpr const char* byte_level_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

Delimiters take_behavior(JsonObject& json) {
  const auto name = json.take_or<std::string>("behavior", "Isolated");
  const std::vector<std::pair<std::string, Delimiters>> all = {
      {"Removed", Delimiters::removed},
      {"Isolated", Delimiters::isolated},
      {"MergedWithPrevious", Delimiters::with_previous},
      {"MergedWithNext", Delimiters::with_next},
      {"Contiguous", Delimiters::contiguous}};
  std::vector<std::string> names;
  for (const auto& [known, delimiters] : all) {
    if (known == name) return delimiters;
    names.push_back(known);
  }
  json_fail(name, json.path().key("behavior"), "one of " + quoted_list(names));
}

/// A part of a text: a match, or what is between two of them.
struct Section {
  size_t begin;
  size_t end;
  bool is_match;
};

/// Merges each match with the section before it, unless that is a match itself.
void merge_with_previous(std::vector<Section>& sections) {
  size_t used = 0;
  bool after_match = false;
  for (const Section& section : sections) {
    const bool merges = section.is_match && !after_match && used > 0;
    after_match = section.is_match;
    if (merges) {
      sections[used - 1].end = section.end;
    } else {
      sections[used++] = section;
    }
  }
  sections.resize(used);
}

void merge_with_next(std::vector<Section>& sections) {
  std::vector<Section> reversed;
  bool before_match = false;
  for (size_t i = sections.size(); i-- > 0;) {
    const bool merges = sections[i].is_match && !before_match && !reversed.empty();
    before_match = sections[i].is_match;
    if (merges) {
      reversed.back().begin = sections[i].begin;
    } else {
      reversed.push_back(sections[i]);
    }
  }
  sections.assign(reversed.rbegin(), reversed.rend());
}

void merge_neighbours(std::vector<Section>& sections) {
  size_t used = 0;
  bool last = false;
  for (const Section& section : sections) {
    const bool merges = used > 0 && section.is_match == last;
    last = section.is_match;
    if (merges) {
      sections[used - 1].end = section.end;
    } else {
      sections[used++] = section;
    }
  }
  sections.resize(used);
}

/// Splits the pieces of texts at matches.
class Splitter {
 public:
  Splitter(MatchFinder find, Delimiters delimiters, bool inverts = false)
      : find_(std::move(find)), delimiters_(delimiters), inverts_(inverts) {}

  void operator()(SplitText& text) const {
    thread_local std::vector<TextPiece> pieces;
    pieces.clear();
    for (const TextPiece& piece : text.pieces) {
      if (piece.token >= 0) {
        pieces.push_back(piece);
      } else {
        split(text.text, piece, pieces);
      }
    }
    text.pieces.swap(pieces);
  }

 private:
  void split(std::string_view text, const TextPiece& piece, std::vector<TextPiece>& out) const {
    thread_local std::vector<TextRange> matches;
    const std::string_view part = text.substr(piece.begin, piece.end - piece.begin);
    find_(part, matches);
    if (delimiters_ == Delimiters::isolated) {
      size_t at = 0;
      for (const TextRange& match : matches) {
        add(piece, at, match.begin, out);
        add(piece, match.begin, match.end, out);
        at = match.end;
      }
      add(piece, at, part.size(), out);
      return;
    }
    thread_local std::vector<Section> sections;
    find_sections(part.size(), matches, sections);
    if (delimiters_ == Delimiters::with_previous) merge_with_previous(sections);
    if (delimiters_ == Delimiters::with_next) merge_with_next(sections);
    if (delimiters_ == Delimiters::contiguous) merge_neighbours(sections);
    for (const Section& section : sections) {
      if (delimiters_ == Delimiters::removed && section.is_match) continue;
      add(piece, section.begin, section.end, out);
    }
  }

  void find_sections(size_t size, const std::vector<TextRange>& matches,
                     std::vector<Section>& sections) const {
    sections.clear();
    size_t at = 0;
    for (const TextRange& match : matches) {
      if (at != match.begin) sections.push_back({at, match.begin, inverts_});
      sections.push_back({match.begin, match.end, !inverts_});
      at = match.end;
    }
    if (at != size) sections.push_back({at, size, inverts_});
  }

  static void add(const TextPiece& whole, size_t begin, size_t end, std::vector<TextPiece>& out) {
    if (begin == end) return;
    out.push_back({whole.begin + begin, whole.begin + end, whole.is_first && begin == 0, -1});
  }

  MatchFinder find_;
  Delimiters delimiters_;
  bool inverts_;
};

/// Finds each character for which `is_match` is true.
template <class IsMatch>
MatchFinder characters_that(IsMatch is_match) {
  return [is_match](std::string_view text, std::vector<TextRange>& out) {
    out.clear();
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      if (is_match(next_character(text, at))) out.push_back({begin, at});
    }
  };
}

/// Finds runs of word characters, and runs of others that are no spaces.
void find_words_and_symbols(std::string_view text, std::vector<TextRange>& out) {
  out.clear();
  int kind = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t c = next_character(text, at);
    const int next = is_word_character(c) ? 1 : is_white_space(c) ? 0 : 2;
    if (next != 0 && next == kind) {
      out.back().end = at;
    } else if (next != 0) {
      out.push_back({begin, at});
    }
    kind = next;
  }
}

/// Rewrites the pieces that are no added tokens: rewrite(piece, its text, out) appends the new
/// text.
template <class Rewrite>
void rewrite_pieces(SplitText& text, const Rewrite& rewrite) {
  std::string out;
  out.reserve(text.text.size() + text.pieces.size());
  for (TextPiece& piece : text.pieces) {
    const auto old = std::string_view(text.text).substr(piece.begin, piece.end - piece.begin);
    piece.begin = out.size();
    if (piece.token < 0) rewrite(piece, old, out);
    piece.end = out.size();
  }
  text.text = std::move(out);
}

PreTokenizing bert_pre_tokenizer(JsonObject&) {
  const Splitter at_spaces(characters_that(is_white_space), Delimiters::removed);
  const Splitter at_punctuation(characters_that(is_bert_punctuation), Delimiters::isolated);
  return {[=](SplitText& text) {
    at_spaces(text);
    at_punctuation(text);
  }};
}

PreTokenizing byte_level_pre_tokenizer(JsonObject& json) {
  const bool adds_space = json.take_or("add_prefix_space", true);
  json.take_or("trim_offsets", true);
  const bool splits = json.take_or("use_regex", true);
  Splitter split(nullptr, Delimiters::isolated);
  if (splits) {
    const RegularExpression regex(byte_level_pattern, json.path().text());
    split = Splitter(
        [regex](std::string_view text, std::vector<TextRange>& out) { regex.find_all(text, out); },
        Delimiters::isolated);
  }
  const auto add_space = [](const TextPiece&, std::string_view old, std::string& out) {
    if (!old.starts_with(' ')) out += ' ';
    out += old;
  };
  return {[=](SplitText& text) {
            if (adds_space) rewrite_pieces(text, add_space);
            if (splits) split(text);
          },
          true};
}

PreTokenizing metaspace_pre_tokenizer(JsonObject& json) {
  const std::string mark = take_character(json, "replacement");
  // Old files have the first two keys.
  json.take_or<std::string>("str_rep", "");
  const bool adds = json.take_or("add_prefix_space", true);
  const auto scheme = json.take_or<std::string>("prepend_scheme", adds ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    json_fail(scheme, json.path().key("prepend_scheme"), "\"always\", \"first\" or \"never\"");
  }
  const bool splits = json.take_or("split", true);
  const auto replace = [=](const TextPiece& piece, std::string_view old, std::string& out) {
    const bool marked = old.starts_with(' ') || old.starts_with(mark);
    if (!marked && (scheme == "always" || (scheme == "first" && piece.is_first))) out += mark;
    for (const char c : old) {
      if (c == ' ') {
        out += mark;
      } else {
        out += c;
      }
    }
  };
  size_t at = 0;
  const char32_t character = next_character(mark, at);
  const Splitter split(characters_that([=](char32_t c) { return c == character; }),
                       Delimiters::with_next);
  return {[=](SplitText& text) {
    rewrite_pieces(text, replace);
    if (splits) split(text);
  }};
}

PreTokenizing sequence_pre_tokenizer(JsonObject& json) {
  const auto steps = make_components(json, "pretokenizers", make_pre_tokenizer);
  const bool byte_level = !steps.empty() && steps.back().byte_level;
  return {[=](SplitText& text) {
            for (size_t i = 0; i < steps.size(); ++i) {
              if (steps[i].split) steps[i].split(text);
              // The last step's bytes are the model's.
              if (steps[i].byte_level && i + 1 < steps.size()) to_byte_characters(text);
            }
          },
          byte_level};
}

const ComponentMakers<PreTokenizing>& pre_tokenizer_makers() {
  static const ComponentMakers<PreTokenizing> makers = {
      {"BertPreTokenizer", bert_pre_tokenizer},
      {"ByteLevel", byte_level_pre_tokenizer},
      {"Metaspace", metaspace_pre_tokenizer},
      {"Sequence", sequence_pre_tokenizer},
      {"Split",
       [](JsonObject& json) -> PreTokenizing {
         MatchFinder find = take_pattern(json);
         const Delimiters delimiters = take_behavior(json);
         return {Splitter(std::move(find), delimiters, json.take_or("invert", false))};
       }},
      {"Digits",
       [](JsonObject& json) -> PreTokenizing {
         const bool single = json.take_or("individual_digits", false);
         return {Splitter(characters_that(is_number),
                          single ? Delimiters::isolated : Delimiters::contiguous)};
       }},
      {"Punctuation",
       [](JsonObject& json) -> PreTokenizing {
         return {Splitter(characters_that(is_bert_punctuation), take_behavior(json))};
       }},
      {"Whitespace",
       [](JsonObject&) -> PreTokenizing {
         return {Splitter(find_words_and_symbols, Delimiters::removed, true)};
       }},
      {"WhitespaceSplit",
       [](JsonObject&) -> PreTokenizing {
         return {Splitter(characters_that(is_white_space), Delimiters::removed)};
       }},
      {"CharDelimiterSplit",
       [](JsonObject& json) -> PreTokenizing {
         const std::string delimiter = take_character(json, "delimiter");
         size_t at = 0;
         const char32_t character = next_character(delimiter, at);
         return {Splitter(characters_that([=](char32_t c) { return c == character; }),
                          Delimiters::removed)};
       }},
  };
  return makers;
}

}  // namespace

PreTokenizing make_pre_tokenizer(const Json& json, const JsonPath& path) {
  if (json.is_null()) return {};
  return make_component(json, path, "pre-tokenizer", pre_tokenizer_makers());
}

void to_byte_characters(SplitText& text) {
  rewrite_pieces(text, [](const TextPiece&, std::string_view old, std::string& out) {
    for (const char c : old) append_utf8(out, character_of_byte(static_cast<unsigned char>(c)));
  });
}

}  // namespace tessera::detail
