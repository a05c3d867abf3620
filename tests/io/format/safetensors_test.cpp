#include <tessera/framework/io/format/safetensors.hpp>

#include <array>
#include <cstring>
#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/io/format/safetensors_header.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/cpu_time.hpp"
#include "tests/support/files.hpp"
#include "tests/support/tar_file.hpp"

namespace safetensors_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

/// Returns the text of the FileError from opening a file of these bytes; "" if it opens.
std::string open_error(const test::TempFolder& folder, const std::string& bytes) {
  const std::string path = (folder / "case.safetensors").string();
  test::write_file(path, bytes);
  try {
    const SafetensorsFile file(path);
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

std::string bytes_of(const SafeTensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()};
}

template <class T, size_t N>
std::span<const std::byte> raw(const std::array<T, N>& values) {
  return std::as_bytes(std::span(values));
}

std::string write_error(const std::string& path, std::vector<SafeTensor> tensors) {
  try {
    write_safetensors(path, std::move(tensors));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("safetensors files are accepted as by the reference implementation") {
  // Cases in which this reader is deliberately stricter.
  const std::set<std::string> stricter{"tensor twice",          "unknown field twice",
                                       "metadata key twice",    "unknown field 70 deep",
                                       "extent 2^63 after a 0", "tensor as a list"};
  const test::TempFolder folder;
  const Json golden = read_json_file(test::golden_path("safetensors_cases.json").string());
  REQUIRE(golden["cases"].size() >= 100);
  for (const Json& entry : golden["cases"]) {
    const auto name = entry["name"].get<std::string>();
    CAPTURE(name);
    const bool expected = entry["accepted"].get<bool>() && !stricter.contains(name);
    const std::string error = open_error(folder, from_hex(entry["bytes"].get<std::string>()));
    CHECK(error.empty() == expected);
    if (expected) continue;
    CHECK_THAT(error, Contains("case.safetensors, byte "));
    CHECK(error.size() < 1000);
    CHECK(error.find('\n') == std::string::npos);
  }
}

TEST_CASE("safetensors errors name the tensor and the problem") {
  const test::TempFolder folder;
  const auto error = [&](const std::string& header, size_t data) {
    std::string bytes(8, '\0');
    bytes[0] = static_cast<char>(header.size());
    return open_error(folder, bytes + header + std::string(data, '\0'));
  };
  CHECK_THAT(error("{\"w/k\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8),
             Contains("\"w/k\": F32 of shape (3,) has 12 bytes. Received: 8 bytes."));
  CHECK_THAT(error("{\"a\":{\"dtype\":\"F33\",\"shape\":[],\"data_offsets\":[0,4]}}", 4),
             Contains("tensor \"a\"") && Contains("Received: \"F33\""));
  CHECK_THAT(error("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5),
             Contains("byte 62] the tensors take 4 bytes. Received: 5 bytes"));
  CHECK_THAT(error("{\"a\": 1, \"a\": 2}", 0), Contains("header:1:12"));
}

TEST_CASE("a truncated safetensors file is refused at every length") {
  const test::TempFolder folder;
  const std::string bytes = test::read_file(test::golden_path("reference.safetensors"));
  for (size_t length = 0; length < bytes.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(open_error(folder, bytes.substr(0, length)).empty());
  }
  CHECK(open_error(folder, bytes).empty());
}

TEST_CASE("a changed bit in a safetensors header never crashes the reader") {
  const test::TempFolder folder;
  const std::string bytes = test::read_file(test::golden_path("reference.safetensors"));
  size_t refused = 0;
  for (size_t at = 0; at < 700; ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    refused += !open_error(folder, changed).empty();
  }
  CHECK(refused > 400);
}

TEST_CASE("a file of the reference implementation is read and rewritten byte for byte") {
  const test::TempFolder folder;
  const std::string path = test::golden_path("reference.safetensors").string();
  const SafetensorsFile file(path);
  CHECK(file.tensors().size() == 15);
  CHECK(file.metadata().at("format") == "tessera \xc3\xa9\t");
  const SafeTensor& scalar = file.at("caf\xc3\xa9 \"quoted\"\n");
  CHECK(scalar.dtype == "F32");
  CHECK(scalar.shape.empty());
  const SafeTensor& doubles = file.at("layer_1/f8");
  CHECK(doubles.shape == Shape{4});
  std::array<double, 4> values{};
  std::memcpy(values.data(), doubles.data.data(), doubles.data.size());
  CHECK(values == std::array<double, 4>{0, 1, 2, 3});
  const std::string copy = (folder / "copy.safetensors").string();
  std::vector<SafeTensor> shuffled(file.tensors().rbegin(), file.tensors().rend());
  write_safetensors(copy, shuffled, file.metadata());
  CHECK(test::read_file(copy) == test::read_file(path));
}

TEST_CASE("written safetensors read back") {
  const test::TempFolder folder;
  const std::string path = (folder / "w.safetensors").string();
  const std::array<float, 6> kernel{1, 2, 3, 4, 5, 6};
  const std::array<int64_t, 1> step{7};
  const std::string name = "../x/\xf0\x9f\x98\x80" + std::string(4096, 'n') + std::string(1, '\0');
  write_safetensors(path, {{"kernel", "F32", {2, 3}, raw(kernel)},
                           {name, "I64", {}, raw(step)},
                           {"none", "F16", {0, 5}, {}}});
  const SafetensorsFile file(path);
  CHECK(bytes_of(file.at("kernel")) == std::string(reinterpret_cast<const char*>(&kernel), 24));
  CHECK(file.at("kernel").shape == Shape{2, 3});
  CHECK(file.at(name).dtype == "I64");
  CHECK(file.at("none").data.empty());
  CHECK(file.find("kernels") == nullptr);
  CHECK_THROWS_WITH(file.at("kernels"), Contains("write \"kernel\""));
  CHECK(file.metadata().empty());
  const SafetensorsFile moved = [&] { return SafetensorsFile(path); }();
  CHECK(moved.at("kernel").data.size() == 24);
  write_safetensors(path, {});
  CHECK(SafetensorsFile(path).tensors().empty());
}

TEST_CASE("tensors that safetensors cannot hold are not written") {
  const test::TempFolder folder;
  const std::string path = (folder / "w.safetensors").string();
  const std::array<float, 2> two{1, 2};
  const auto error = [&](const SafeTensor& tensor) { return write_error(path, {tensor}); };
  CHECK_THAT(error({"a", "F32", {3}, raw(two)}), Contains("tensor \"a\"") && Contains("8 bytes"));
  CHECK_THAT(error({"a", "float32", {2}, raw(two)}), Contains("\"float32\""));
  CHECK_THAT(error({"a", "F32", {-2}, raw(two)}), Contains("shape (-2,)"));
  CHECK_THAT(error({"\xff", "F32", {2}, raw(two)}), Contains("UTF-8"));
  CHECK_THAT(error({"__metadata__", "F32", {2}, raw(two)}), Contains("rename"));
  const SafeTensor twice{"a", "F32", {2}, raw(two)};
  CHECK_THAT(write_error(path, {twice, twice}), Contains("\"a\" twice"));
  const SafeTensor other{"a", "U32", {2}, raw(two)};
  CHECK_THAT(write_error(path, {twice, other}), Contains("\"a\" twice"));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a header of many tensors reads in linear time") {
  const auto seconds = [](uint64_t tensors) {
    std::string text = "{";
    for (uint64_t i = 0; i < tensors; ++i) {
      text += str(i > 0 ? "," : "", "\"layer/", i,
                  "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[", i, ",", i + 1, "]}");
    }
    text += "}";
    return test::cpu_seconds(
        [&] { CHECK(parse_safetensors_header(text, tensors, "a").tensors.size() == tensors); });
  };
  // Comparing each tensor with all before it would take 64 times as long.
  CHECK(seconds(32'000) < 32 * seconds(4'000));
}

TEST_CASE("a compressed file may expand to much more and must end with its tensors") {
  const test::TempFolder folder;
  const std::string plain = folder / "a.safetensors", packed = folder / "a.safetensors.gz";
  const std::vector<float> zeros(100'000);
  write_safetensors(plain, {{"x", "F32", {100'000}, std::as_bytes(std::span(zeros))}});
  const std::string bytes = test::read_file(plain);
  const std::string small = test::gzip_bytes(bytes);
  REQUIRE(small.size() < bytes.size() / 100);
  test::write_file(packed, small);
  const SafetensorsFile file(packed);
  CHECK(bytes_of(file.at("x")) == std::string(400'000, '\0'));
  test::write_file(packed, test::gzip_bytes(bytes + "x"));
  CHECK_THROWS_WITH(SafetensorsFile(packed), Contains("the end of the file") && Contains("more"));
  test::write_file(packed, test::gzip_bytes(bytes.substr(0, bytes.size() - 1)));
  CHECK_THROWS_WITH(SafetensorsFile(packed), Contains("the file ends inside them"));
  // More than any compressed file of this size can hold.
  const std::string header =
      R"({"x":{"dtype":"U8","shape":[1000000000],"data_offsets":[0,1000000000]}})";
  std::string lying(8, '\0');
  lying[0] = static_cast<char>(header.size());
  test::write_file(packed, test::gzip_bytes(lying + header));
  CHECK_THROWS_WITH(SafetensorsFile(packed), Contains("tensors of at most"));
}

}  // namespace safetensors_test
