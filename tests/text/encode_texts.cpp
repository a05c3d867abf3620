// Encodes texts by a tokenizer: encode_texts TOKENIZER TEXTS OUT. In TEXTS, each text follows its
// size in bytes; in OUT, the ids of each text follow their number. All numbers are little-endian
// and have 32 bits. Prints the bytes of the texts, and the processor time of encoding them one by
// one, in seconds.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/text/tokenizer.hpp>

using namespace tessera;

int main(int count, char** arguments) {
  if (count != 4) return 2;
  try {
    const Tokenizer tokenizer = load_tokenizer(arguments[1]);
    const std::string bytes = detail::read_file(arguments[2]);
    std::vector<std::string_view> texts;
    size_t size = 0;
    for (size_t at = 0; at + 4 <= bytes.size();) {
      uint32_t length;
      std::memcpy(&length, bytes.data() + at, 4);
      texts.push_back(std::string_view(bytes).substr(at + 4, length));
      size += length;
      at += 4 + length;
    }
    std::vector<std::vector<int32_t>> ids(texts.size());
    const std::clock_t before = std::clock();
    for (size_t i = 0; i < texts.size(); ++i) ids[i] = tokenizer.encode(texts[i]).ids;
    const double seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    std::FILE* out = std::fopen(arguments[3], "wb");
    if (!out) return 1;
    for (const auto& list : ids) {
      const auto length = static_cast<uint32_t>(list.size());
      std::fwrite(&length, 4, 1, out);
      std::fwrite(list.data(), 4, list.size(), out);
    }
    if (std::fclose(out) != 0) return 1;
    std::printf("%zu %.6f\n", size, seconds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
