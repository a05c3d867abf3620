// Tests of the program llm on a small random Llama, and of the texts that it prints token by token.
#include <filesystem>

#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "apps/llm/streamed_text.hpp"
#include "tests/apps/small_llama.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

namespace llm_test {

using namespace tessera;
using Catch::Matchers::Contains;

namespace {

test::ProgramRun run_llm(const std::vector<std::string>& arguments) {
  return test::run_program(test::app_path("llm"), arguments);
}

std::string continued(const std::vector<std::string>& arguments) {
  const test::ProgramRun run = run_llm(arguments);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return run.out;
}

/// Returns the parts in which a text of bytes is printed, and what is left at its end.
std::vector<std::string> parts_of(const std::string& bytes, const std::vector<std::string>& stops) {
  const Tokenizer tokenizer = Tokenizer::from_json(test::small_tokenizer_json({}));
  llm::StreamedText text(tokenizer, {'a', 'b'}, stops);
  std::vector<std::string> parts;
  for (const char byte : bytes) parts.push_back(text.add(static_cast<uint8_t>(byte)));
  parts.push_back(text.finish());
  return parts;
}

}  // namespace

TEST_CASE("llm: a text is printed by complete characters, up to a stop word") {
  using Parts = std::vector<std::string>;
  CHECK(parts_of("a b", {}) == Parts{"a", " ", "b", ""});
  CHECK(parts_of("\xC3\xA9\xE2\x82\xAC!", {}) == Parts{"", "é", "", "", "€", "!", ""});
  // Bytes that never become a character are left out at the end.
  CHECK(parts_of("a\xE2\x82", {}) == Parts{"a", "", "", ""});
  CHECK(parts_of("xSTxSTOPy", {"STOP"}) == Parts{"x", "", "", "STx", "", "", "", "", "", ""});
  CHECK(parts_of("xST", {"STOP"}) == Parts{"x", "", "", "ST"});
}

TEST_CASE("llm: the same words on every mesh, with and without an adapter") {
  const test::TempFolder folder;
  const std::string base = folder.path();
  test::write_small_llama(base);
  const std::string text = continued({base, "abc", "--words", "12"});
  CHECK(text.starts_with("abc"));
  CHECK(text.ends_with("\n"));
  // The library generates the same text.
  CHECK(text == generate(load_pretrained(base), load_tokenizer(base), "abc",
                         {.max_new_tokens = 12, .stop_tokens = {test::small_llama_end}}) +
                    "\n");
  CHECK(continued({base, "abc", "--words", "12", "--mesh", "batch=2,model=2"}) == text);
  const std::string layouts = folder / "layouts.json";
  test::write_file(layouts, R"({"mesh": {"batch": 2, "model": 2}, "data": {"x": ["batch", null]},
    "layouts": [{"match": ".*/(up|gate)/kernel", "layout": [null, "model"]},
                {"match": "words/embeddings", "layout": ["model", null]}]})");
  CHECK(continued({base, "abc", "--words", "12", "--layouts", layouts}) == text);
  const std::string drawn = continued({base, "abc", "--words", "12", "--temperature", "2"});
  CHECK(drawn != text);
  CHECK(continued({base, "abc", "--words", "12", "--temperature", "2"}) == drawn);
  CHECK(continued({base, "abc", "--words", "12", "--temperature", "2", "--seed", "5"}) != drawn);
  CHECK(continued({base, "abc", "--words", "12", "--top-k", "1"}) == text);

  const ModelHandle model = load_pretrained(base);
  model.enable_lora(".*/(query|value|up)", 2, {.b_initializer = "normal", .as_matrix = true});
  const std::string adapter = folder / "adapter";
  save_pretrained_adapters(model, base, adapter);
  const std::string adapted = continued({base, "abc", "--words", "12", "--adapter", adapter});
  CHECK(adapted == generate(model, load_tokenizer(base), "abc",
                            {.max_new_tokens = 12, .stop_tokens = {test::small_llama_end}}) +
                       "\n");
}

TEST_CASE("llm: answers messages, and stops") {
  const test::TempFolder folder;
  const std::string base = folder.path();
  test::write_small_llama(base);
  const test::ProgramRun run =
      run_llm({base, "Hi", "Ho", "--chat", "--system", "Be short.", "--words", "3"});
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.err, Contains("tokens/s"));
  CHECK_THAT(run.out, !Contains("im_start") && !Contains("Hi"));
  const std::string text = continued({base, "abc", "--words", "12"});
  const std::string stop = text.substr(6, 1);
  CHECK(continued({base, "abc", "--words", "12", "--stop", stop}) ==
        text.substr(0, text.find(stop, 3)) + "\n");
}

TEST_CASE("llm: what is wrong is a line") {
  const test::TempFolder folder;
  const std::string base = folder.path();
  test::write_small_llama(base);
  const auto error = [](const std::vector<std::string>& arguments) {
    const test::ProgramRun run = run_llm(arguments);
    CHECK(run.exit_code == 1);
    CHECK(run.err.find('\n') == run.err.size() - 1);
    return run.err;
  };
  CHECK_THAT(error({base}), Contains("[TEXT]"));
  CHECK_THAT(error({base, "a", "--top-p", "1.5"}), Contains("[--top-p]"));
  CHECK_THAT(error({base, "a", "--system", "b"}), Contains("add --chat"));
  CHECK_THAT(error({base, "a", "--adapter", base}), Contains("adapter_config.json"));
  CHECK_THAT(error({base + "/none", "a"}), Contains("none"));
  CHECK_THAT(error({"model.gguf", "a"}), Contains("[--tokenizer]"));
  test::write_file(base + "/tokenizer.json",
                   test::small_tokenizer_json({"<a>", "<b>", "<c>", "<d>", "<e>"}));
  CHECK_THAT(error({base, "a"}), Contains("token ids are below 260"));
}

}  // namespace llm_test
