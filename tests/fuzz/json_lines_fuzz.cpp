#include <string_view>

#include <tessera/datasets/files/json_lines.hpp>
#include <tessera/framework/base/error.hpp>

#include "tests/fuzz/memory_file.hpp"

using namespace tessera;
using namespace tessera::detail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    int64_t line = 0;
    for (const TrainingDocument& document : parse_json_lines(input, "data.jsonl")) {
      fuzz::require(document.line > line);
      line = document.line;
      // A document is a chat, or a text.
      fuzz::require(document.messages.empty() ||
                    (document.text.empty() && document.prompt.empty()));
      for (const ChatMessage& message : document.messages) {
        fuzz::require(message.role == "system" || message.role == "user" ||
                      message.role == "assistant");
      }
    }
    fuzz::require(line <= static_cast<int64_t>(size));
  } catch (const ConfigError&) {
  }
  return 0;
}
