#include <tessera/framework/io/format/gguf_reader.hpp>

#include <algorithm>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/rectangle_runs.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/gguf_file.hpp"

namespace gguf_reader_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::GgufFile;

namespace {

std::vector<float> elements(const GgufReader& reader, const GgufTensor& tensor,
                            const Rectangle& area) {
  size_t count = 1;
  for (size_t axis = 0; axis < area.begin.size(); ++axis) count *= size_t(area.size(axis));
  std::vector<float> values(count, -1);
  reader.read(tensor, area, values);
  return values;
}

/// Returns the error of opening a file of these bytes.
std::string error_of(const std::string& bytes) {
  const test::TempFolder folder;
  test::write_file(folder / "a.gguf", bytes);
  try {
    const GgufReader reader((folder / "a.gguf").string());
  } catch (const FileError& error) {
    REQUIRE_THAT(error.what(), Contains("a.gguf"));
    return error.what();
  }
  return "no error";
}

GgufFile small_file() {
  GgufFile file;
  file.add_text("general.architecture", "llama");
  file.add_u32("llama.block_count", 2);
  file.add("tokens", 9,
           GgufFile::number<uint32_t>(8) + GgufFile::number<uint64_t>(2) + GgufFile::text("a") +
               GgufFile::text("bc"));
  file.add_tensor("w", {2, 3}, 0, std::string(24, '\1'));
  file.add_tensor("b", {4}, 1, std::string(8, '\1'));
  return file;
}

}  // namespace

TEST_CASE("types of a GGUF file have the elements that llama.cpp's own package reads") {
  const GgufReader reader(test::golden_path("gguf/types.gguf").string());
  const Json expected = read_json_file(test::golden_path("gguf/types.json").string());
  REQUIRE(reader.tensors().size() == expected.size());
  for (const GgufTensor& tensor : reader.tensors()) {
    CAPTURE(tensor.name);
    REQUIRE(tensor.name == gguf_type(tensor.type).name);
    REQUIRE(tensor.shape == Shape{3, 64});
    const auto values = expected.at(tensor.name).get<std::vector<float>>();
    REQUIRE(elements(reader, tensor, full_rectangle(tensor.shape)) == values);
    // A part within blocks, across blocks and across rows.
    std::vector<float> part;
    for (const size_t row : {1, 2}) {
      for (size_t column = 5; column < 41; ++column) part.push_back(values[row * 64 + column]);
    }
    REQUIRE(elements(reader, tensor, {{1, 5}, {3, 41}}) == part);
    REQUIRE(elements(reader, tensor, {{2, 63}, {3, 64}}) == std::vector<float>{values[191]});
  }
  const auto& metadata = reader.metadata();
  REQUIRE(metadata.at("general.architecture") == "llama");
  REQUIRE(metadata.at("llama.block_count") == 2);
  REQUIRE(metadata.at("llama.rope.freq_base") == 10000.5);
  REQUIRE(metadata.at("tokenizer.ggml.add_bos_token") == true);
  REQUIRE(metadata.at("minus") == -7);
  REQUIRE(metadata.at("tokenizer.ggml.tokens").is_null());
}

TEST_CASE("a GGUF file that ends anywhere is refused") {
  const std::string bytes = small_file().bytes();
  REQUIRE(error_of(bytes) == "no error");
  REQUIRE(error_of(small_file().bytes(2)) == "no error");
  // The last tensor's padding may be missing.
  const size_t needed = bytes.size() - 24;
  REQUIRE(error_of(bytes.substr(0, needed)) == "no error");
  for (size_t size = 0; size < needed; ++size) {
    CAPTURE(size);
    REQUIRE(error_of(bytes.substr(0, size)) != "no error");
  }
}

TEST_CASE("K-quants and other types of a GGUF file are refused by name") {
  const std::vector<std::pair<uint32_t, std::string>> types = {
      {12, "Q4_K"}, {14, "Q6_K"}, {6, "Q5_0"}, {24, "I8"}, {39, "MXFP4"}, {77, "number 77"}};
  for (const auto& [type, name] : types) {
    GgufFile file;
    file.add_tensor("blk.0.attn_q.weight", {256}, type, std::string(256, '\0'));
    REQUIRE_THAT(error_of(file.bytes()),
                 Contains("tensor \"blk.0.attn_q.weight\"") && Contains("Received: " + name));
  }
}

TEST_CASE("inconsistent GGUF files are refused") {
  const auto expect = [](const GgufFile& file, const std::string& text) {
    REQUIRE_THAT(error_of(file.bytes()), Contains(text));
  };
  REQUIRE_THAT(error_of("GGUG" + small_file().bytes().substr(4)), Contains("first 4 bytes"));
  REQUIRE_THAT(error_of(small_file().bytes(1)), Contains("version 2 or 3"));
  REQUIRE_THAT(error_of(small_file().bytes(3 << 24)), Contains("little-endian"));
  GgufFile file = small_file();
  file.add_tensor("w", {1}, 0, std::string(4, '\0'));
  expect(file, "one tensor \"w\"");
  file = small_file();
  file.add_u32("llama.block_count", 3);
  expect(file, "value \"llama.block_count\": one value");
  file = small_file();
  file.add_tensor("q", {31}, 8, std::string(64, '\0'));
  expect(file, "tensor \"q\": rows of Q8_0 are a multiple of 32");
  file = small_file();
  file.add_tensor("q", {1, 1, 1, 1, 1}, 0, std::string(4, '\0'));
  expect(file, "at most 4 axes");
  file = small_file();
  file.add_tensor("q", {uint64_t{1} << 32, uint64_t{1} << 32}, 0, "");
  expect(file, "tensor \"q\": its bytes are inside the file");
  file = small_file();
  file.add_tensor("q", {uint64_t{1} << 63}, 0, "");
  expect(file, "an extent is below 2^63");
  file = small_file();
  file.add("x", 13, "");
  expect(file, "a type of values");
  file = small_file();
  file.add("x", 7, "\2");
  expect(file, "a bool is 0 or 1");
  file = small_file();
  file.add("x", 9, GgufFile::number<uint32_t>(9) + GgufFile::number<uint64_t>(1));
  expect(file, "an array of arrays");
  file = small_file();
  file.add("x", 9, GgufFile::number<uint32_t>(10) + GgufFile::number<uint64_t>(uint64_t{1} << 61));
  expect(file, "value \"x\": the elements of an array");
  file = small_file();
  file.add_u32("general.alignment", 24);
  expect(file, "general.alignment is a power of 2");
  file = small_file();
  file.add_u32("general.alignment", 64);
  file.add_tensor("c", {64}, 0, std::string(256, '\0'));
  expect(file, "tensor \"b\": its bytes begin at 64");
}

}  // namespace gguf_reader_test
