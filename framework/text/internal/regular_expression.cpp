#include <tessera/framework/text/internal/regular_expression.hpp>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include <oniguruma.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/text/internal/unicode.hpp>
#include <tessera/framework/text/internal/unicode_differences.hpp>

namespace tessera::detail {
namespace {

constexpr size_t max_pattern_bytes = 1 << 14;
/// Steps back in one search; patterns of tokenizers need a few.
constexpr unsigned long max_retries = 1'000'000;
/// Entries of the stack of one search, of some 50 bytes: a greedy loop takes one for each
/// character.
constexpr unsigned max_stack = 1 << 21;
constexpr unsigned max_parse_depth = 200;

/// A property of characters, and those that have it in later versions of Unicode.
struct LaterProperty {
  const char* name;
  std::span<const CharacterRange> additions;
};

/// Gives properties of the patterns' characters the version of Unicode of `tokenizers`, which has a
/// later Oniguruma. A property that is defined by its user is found before one of the library.
void define_properties() {
  const LaterProperty properties[] = {
      {"L", property_l_additions},   {"Lu", property_lu_additions}, {"Ll", property_ll_additions},
      {"Lm", property_lm_additions}, {"Lo", property_lo_additions}, {"M", property_m_additions},
      {"N", property_n_additions},   {"P", property_p_additions},   {"S", property_s_additions}};
  // The library refers to the ranges: their number, and both ends of each.
  static std::vector<OnigCodePoint> lists[std::size(properties)];
  const OnigEncoding utf8 = ONIG_ENCODING_UTF8;
  for (size_t i = 0; i < std::size(properties); ++i) {
    const std::string name = properties[i].name;
    OnigUChar buffer[4] = {};
    std::copy(name.begin(), name.end(), buffer);
    const int type = utf8->property_name_to_ctype(utf8, buffer, buffer + name.size());
    OnigCodePoint one_byte_end = 0;
    const OnigCodePoint* known = nullptr;
    if (type < 0 || utf8->get_ctype_code_range(static_cast<OnigCtype>(type), &one_byte_end,
                                               &known) != ONIG_NORMAL) {
      continue;
    }
    std::vector<std::pair<OnigCodePoint, OnigCodePoint>> ranges;
    for (OnigCodePoint range = 0; range < known[0]; ++range) {
      ranges.emplace_back(known[1 + 2 * range], known[2 + 2 * range]);
    }
    for (const CharacterRange& added : properties[i].additions) {
      ranges.emplace_back(added.first, added.last);
    }
    std::sort(ranges.begin(), ranges.end());
    std::vector<OnigCodePoint>& list = lists[i];
    list = {0};
    for (const auto& [first, last] : ranges) {
      if (list[0] > 0 && first <= list.back() + 1) {
        list.back() = std::max(list.back(), last);
        continue;
      }
      ++list[0];
      list.push_back(first);
      list.push_back(last);
    }
    onig_unicode_define_user_property(properties[i].name, list.data());
  }
}

/// Oniguruma's syntax without callouts.
OnigSyntaxType* pattern_syntax() {
  static OnigSyntaxType syntax = [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
    onig_set_parse_depth_limit(max_parse_depth);
    define_properties();
    OnigSyntaxType made = OnigSyntaxOniguruma;
    made.op2 &= ~(ONIG_SYN_OP2_ASTERISK_CALLOUT_NAME | ONIG_SYN_OP2_QMARK_BRACE_CALLOUT_CONTENTS);
    return made;
  }();
  return &syntax;
}

const OnigUChar* onig_bytes(const char* text) { return reinterpret_cast<const OnigUChar*>(text); }

std::string onig_text(int code, OnigErrorInfo* info = nullptr) {
  OnigUChar buffer[ONIG_MAX_ERROR_MESSAGE_LEN] = {};
  const int length =
      info ? onig_error_code_to_str(buffer, code, info) : onig_error_code_to_str(buffer, code);
  return one_line({reinterpret_cast<const char*>(buffer), static_cast<size_t>(length)}, 200);
}

/// Memory and limits of a thread's searches.
struct SearchMemory {
  SearchMemory() : region(onig_region_new()), limits(onig_new_match_param()) {
    if (!region || !limits) throw std::bad_alloc();
    onig_initialize_match_param(limits);
    onig_set_match_stack_limit_size_of_match_param(limits, max_stack);
    onig_set_retry_limit_in_match_of_match_param(limits, max_retries);
    onig_set_retry_limit_in_search_of_match_param(limits, max_retries);
  }
  ~SearchMemory() {
    if (region) onig_region_free(region, 1);
    if (limits) onig_free_match_param(limits);
  }
  SearchMemory(const SearchMemory&) = delete;
  SearchMemory& operator=(const SearchMemory&) = delete;

  OnigRegion* region;
  OnigMatchParam* limits;
};

}  // namespace

RegularExpression::RegularExpression(const std::string& pattern, std::string where)
    : where_(std::move(where)) {
  if (pattern.size() > max_pattern_bytes) {
    throw ConfigError(where_, str("a pattern has at most ", max_pattern_bytes, " bytes"),
                      str(pattern.size(), " bytes"), "use a shorter one");
  }
  regex_t* compiled = nullptr;
  OnigErrorInfo info{};
  // Compiling changes global state of the library.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const int code =
      onig_new(&compiled, onig_bytes(pattern.data()), onig_bytes(pattern.data() + pattern.size()),
               ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, pattern_syntax(), &info);
  if (code == ONIGERR_MEMORY) throw std::bad_alloc();
  if (code != ONIG_NORMAL) {
    throw ConfigError(where_, "a regular expression of Oniguruma", in_quotes(pattern),
                      "correct the pattern: " + onig_text(code, &info));
  }
  compiled_ =
      std::shared_ptr<void>(compiled, [](void* regex) { onig_free(static_cast<regex_t*>(regex)); });
}

void RegularExpression::find_all(std::string_view text, std::vector<TextRange>& out) const {
  out.clear();
  thread_local SearchMemory memory;
  auto* regex = static_cast<regex_t*>(compiled_.get());
  const OnigUChar* begin = onig_bytes(text.data());
  const OnigUChar* end = begin + text.size();
  size_t from = 0;
  size_t last_end = SIZE_MAX;
  while (from <= text.size()) {
    const int found = onig_search_with_param(regex, begin, end, begin + from, end, memory.region,
                                             ONIG_OPTION_NONE, memory.limits);
    if (found == ONIG_MISMATCH) return;
    if (found == ONIGERR_MEMORY) throw std::bad_alloc();
    if (found < 0) {
      throw ConfigError(where_, "a pattern that needs few steps back", onig_text(found),
                        "use a pattern without nested repetitions, or a shorter text");
    }
    const auto first = static_cast<size_t>(memory.region->beg[0]);
    const auto last = static_cast<size_t>(memory.region->end[0]);
    if (first == last && last == last_end) {
      from += from < text.size() ? length_after(text[from]) : 1;
      continue;
    }
    out.push_back({first, last});
    from = last_end = last;
  }
}

}  // namespace tessera::detail
