#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/text/tokenizer.hpp>

#include "tests/fuzz/memory_file.hpp"

using namespace tessera;

/// A tokenizer.json, a NUL, and a text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t nul = input.find('\0');
  const std::string_view text =
      nul == std::string_view::npos ? "A text, 12 bytes." : input.substr(nul + 1);
  try {
    const Tokenizer tokenizer = Tokenizer::from_json(input.substr(0, nul), "tokenizer.json");
    const Encoding encoding = tokenizer.encode(text);
    const size_t length = encoding.ids.size();
    fuzz::require(encoding.type_ids.size() == length && encoding.attention_mask.size() == length &&
                  encoding.special_tokens_mask.size() == length);
    // A second call finds words in the cache.
    fuzz::require(tokenizer.encode(text).ids == encoding.ids);
    const std::vector<std::string_view> twice(2, text);
    fuzz::require(tokenizer.encode_batch(twice, {.threads = 2})[1].ids == encoding.ids ||
                  tokenizer.padding());
    tokenizer.decode(encoding.ids);
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
