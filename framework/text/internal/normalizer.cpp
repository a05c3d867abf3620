#include <tessera/framework/text/internal/normalizer.hpp>

#include <memory>
#include <utility>
#include <vector>

#include <tessera/framework/base/internal/base64.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/text/internal/component_json.hpp>
#include <tessera/framework/text/internal/precompiled_charsmap.hpp>
#include <tessera/framework/text/internal/unicode.hpp>

namespace tessera::detail {
namespace {

/// Replaces a text by what `append(out, character)` makes of its characters.
template <class Append>
void map_characters(std::string& text, const Append& append) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) append(out, next_character(text, at));
  text = std::move(out);
}

void to_lower_case(std::string& text) { map_characters(text, append_lower_case); }

/// Drops the characters for which `is_dropped` is true.
template <class IsDropped>
void drop_characters(std::string& text, const IsDropped& is_dropped) {
  map_characters(text, [&](std::string& out, char32_t c) {
    if (!is_dropped(c)) append_utf8(out, c);
  });
}

void append_clean(std::string& out, char32_t c) {
  if (c == 0 || c == 0xFFFD || is_bert_control(c)) return;
  if (is_white_space(c)) {
    out += ' ';
  } else {
    append_utf8(out, c);
  }
}

void append_spaced(std::string& out, char32_t c) {
  const bool spaced = is_bert_ideograph(c);
  if (spaced) out += ' ';
  append_utf8(out, c);
  if (spaced) out += ' ';
}

/// BERT's steps on ASCII, in one pass.
void normalize_ascii(std::string& text, bool cleans, bool lowers) {
  size_t used = 0;
  for (char c : text) {
    if (cleans) {
      const bool is_space = c >= '\t' && c <= '\r';
      // Of the spaces of C, BERT drops the vertical tab and the form feed as control characters.
      if (c == '\v' || c == '\f' || (c < ' ' && !is_space) || c == 0x7F) continue;
      if (is_space) c = ' ';
    }
    if (lowers && c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    text[used++] = c;
  }
  text.resize(used);
}

Normalizer bert_normalizer(JsonObject& json) {
  const bool cleans = json.take_or("clean_text", true);
  const bool spaces = json.take_or("handle_chinese_chars", true);
  const bool lowers = json.take_or("lowercase", true);
  const bool strips = json.take_or("strip_accents", lowers);
  return [=](std::string& text) {
    if (is_ascii(text)) {
      normalize_ascii(text, cleans, lowers);
      return;
    }
    if (cleans) map_characters(text, append_clean);
    if (spaces) map_characters(text, append_spaced);
    if (strips) {
      to_normal_form(text, NormalForm::nfd);
      drop_characters(text, is_nonspacing_mark);
    }
    if (lowers) to_lower_case(text);
  };
}

void strip_text(std::string& text, bool left, bool right) {
  size_t begin = 0;
  size_t end = text.size();
  for (size_t at = 0; left && at < end && is_white_space(next_character(text, at));) begin = at;
  while (right && end > begin) {
    size_t at = end - 1;
    while ((text[at] & 0xC0) == 0x80) --at;
    size_t after = at;
    if (!is_white_space(next_character(text, after))) break;
    end = at;
  }
  text = text.substr(begin, end - begin);
}

/// SentencePiece's normalization of translations: drops control characters, and writes other kinds
/// of space as spaces.
void append_nmt(std::string& out, char32_t c) {
  const bool is_dropped = (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) ||
                          c == 0x7F || c == 0x8F || c == 0x9F;
  if (is_dropped) return;
  const bool is_space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                        (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                        c == 0xFEFF || c == 0xFFFD;
  append_utf8(out, is_space ? U' ' : c);
}

void to_byte_characters(std::string& text) {
  std::string out;
  for (const char c : text) append_utf8(out, character_of_byte(static_cast<unsigned char>(c)));
  text = std::move(out);
}

Normalizer precompiled_normalizer(JsonObject& json) {
  const std::string key = "precompiled_charsmap";
  const auto encoded = json.take_or<std::string>(key, "");
  if (encoded.empty()) return [](std::string&) {};
  const std::optional<std::string> bytes = from_base64(encoded);
  if (!bytes) json_fail(encoded.substr(0, 40), json.path().key(key), "bytes in base64");
  auto table = std::make_shared<const PrecompiledCharsmap>(*bytes, json.path().key(key).text());
  return [table](std::string& text) { table->apply(text); };
}

Normalizer form_normalizer(NormalForm form) {
  return [form](std::string& text) { to_normal_form(text, form); };
}

const ComponentMakers<Normalizer>& normalizer_makers() {
  static const ComponentMakers<Normalizer> makers = {
      {"NFC", [](JsonObject&) { return form_normalizer(NormalForm::nfc); }},
      {"NFD", [](JsonObject&) { return form_normalizer(NormalForm::nfd); }},
      {"NFKC", [](JsonObject&) { return form_normalizer(NormalForm::nfkc); }},
      {"NFKD", [](JsonObject&) { return form_normalizer(NormalForm::nfkd); }},
      {"Lowercase", [](JsonObject&) -> Normalizer { return to_lower_case; }},
      {"Nmt",
       [](JsonObject&) -> Normalizer {
         return [](std::string& text) { map_characters(text, append_nmt); };
       }},
      {"ByteLevel", [](JsonObject&) -> Normalizer { return to_byte_characters; }},
      {"BertNormalizer", bert_normalizer},
      {"Precompiled", precompiled_normalizer},
      {"StripAccents",
       [](JsonObject&) -> Normalizer {
         return [](std::string& text) {
           if (!is_ascii(text)) drop_characters(text, is_mark);
         };
       }},
      {"Strip",
       [](JsonObject& json) -> Normalizer {
         const bool left = json.take_or("strip_left", true);
         const bool right = json.take_or("strip_right", true);
         return [=](std::string& text) { strip_text(text, left, right); };
       }},
      {"Prepend",
       [](JsonObject& json) -> Normalizer {
         return [prefix = json.take<std::string>("prepend")](std::string& text) {
           if (!text.empty()) text.insert(0, prefix);
         };
       }},
      {"Replace",
       [](JsonObject& json) -> Normalizer {
         MatchFinder find = take_pattern(json);
         return [find, content = json.take<std::string>("content")](std::string& text) {
           replace_matches(find, content, text);
         };
       }},
      {"Sequence",
       [](JsonObject& json) -> Normalizer {
         return [steps = make_components(json, "normalizers", make_normalizer)](std::string& text) {
           for (const Normalizer& step : steps) {
             if (step) step(text);
           }
         };
       }},
  };
  return makers;
}

}  // namespace

Normalizer make_normalizer(const Json& json, const JsonPath& path) {
  if (json.is_null()) return nullptr;
  return make_component(json, path, "normalizer", normalizer_makers());
}

}  // namespace tessera::detail
