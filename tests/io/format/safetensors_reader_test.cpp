#include <tessera/framework/io/format/safetensors_reader.hpp>

#include <algorithm>
#include <numeric>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/tar_file.hpp"

namespace safetensors_reader_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using Metadata = std::map<std::string, std::string>;

namespace {

std::vector<float> numbers(size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// Writes the tensors "a" (4, 6) of 0, 1, … and "b" (3) of 100, 101, 102.
void write_two(const std::string& path, const Metadata& metadata = {}) {
  const std::vector<float> a = numbers(24, 0), b = numbers(3, 100);
  write_safetensors(path,
                    {{"a", "F32", {4, 6}, std::as_bytes(std::span(a))},
                     {"b", "F32", {3}, std::as_bytes(std::span(b))}},
                    metadata);
}

const StoredSafeTensor& named(const SafetensorsReader& reader, const std::string& name) {
  const auto found = std::find_if(reader.tensors().begin(), reader.tensors().end(),
                                  [&](const StoredSafeTensor& each) { return each.name == name; });
  REQUIRE(found != reader.tensors().end());
  return *found;
}

std::vector<float> read(const SafetensorsReader& reader, const std::string& name,
                        const Rectangle& area) {
  size_t count = 1;
  for (size_t axis = 0; axis < area.begin.size(); ++axis) count *= size_t(area.size(axis));
  std::vector<float> values(count);
  reader.read(named(reader, name), area, std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

TEST_CASE("a rectangle of a safetensors tensor is read without the rest, or from memory") {
  const test::TempFolder folder;
  const std::string plain = folder / "a.safetensors", packed = folder / "a.safetensors.gz";
  write_two(plain);
  test::write_file(packed, test::gzip_bytes(test::read_file(plain)));
  for (const std::string& path : {plain, packed}) {
    CAPTURE(path);
    const SafetensorsReader reader(path);
    CHECK(reader.tensors().size() == 2);
    CHECK(named(reader, "a").shape == Shape{4, 6});
    CHECK(read(reader, "a", {{1, 2}, {3, 4}}) == std::vector<float>{8, 9, 14, 15});
    CHECK(read(reader, "b", {{1}, {3}}) == std::vector<float>{101, 102});
    CHECK(read(reader, "b", {{2}, {2}}).empty());
    CHECK(reader.bytes_read() == 24);
    CHECK_NOTHROW(reader.verify());
  }
}

TEST_CASE("an index selects the tensors of its files") {
  const test::TempFolder folder;
  const std::string index = folder / "model.safetensors.index.json";
  write_two(folder / "1.safetensors");
  write_two(folder / "2.safetensors");
  test::write_file(index, R"({"weight_map": {"a": "2.safetensors", "b": "1.safetensors"}})");
  const SafetensorsReader reader(index);
  REQUIRE(reader.tensors().size() == 2);
  CHECK(read(reader, "a", {{3, 5}, {4, 6}}) == std::vector<float>{23});
  CHECK(read(reader, "b", {{0}, {1}}) == std::vector<float>{100});
  for (const char* map : {R"({"c": "1.safetensors"})", R"({"a": "none.safetensors"})",
                          R"({"a": "../1.safetensors"})", R"({"a": 1})", "[]"}) {
    CAPTURE(map);
    test::write_file(index, str(R"({"weight_map": )", map, "}"));
    CHECK_THROWS_AS(SafetensorsReader(index), FileError);
  }
  test::write_file(index, "{}");
  CHECK_THROWS_WITH(SafetensorsReader(index), Contains("weight_map"));
}

TEST_CASE("a changed byte is found by the checksum, and a file that shrank when it is read") {
  const test::TempFolder folder;
  const std::string path = folder / "a.safetensors";
  write_two(path, {{"format", "tessera"}, {"xxh128", ""}});
  CHECK_NOTHROW(SafetensorsReader(path).verify());
  std::string bytes = test::read_file(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  test::write_file(path, bytes);
  const SafetensorsReader reader(path);
  CHECK_THROWS_WITH(reader.verify(), Contains("the tensors have the checksum in the metadata"));
  std::filesystem::resize_file(path, bytes.size() - 4);
  CHECK_THROWS_WITH(read(reader, "b", {{0}, {3}}), Contains("the file has shrunk"));
  CHECK(read(reader, "b", {{0}, {2}}) == std::vector<float>{100, 101});
}

}  // namespace safetensors_reader_test
