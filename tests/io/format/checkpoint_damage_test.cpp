#include <tessera/framework/io/format/checkpoint_reader.hpp>
#include <tessera/framework/io/format/checkpoint_writer.hpp>

#include <fstream>
#include <functional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/checkpoint_index.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace checkpoint_damage_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

const std::string shard0 = "shard-00000.safetensors";
const std::string shard1 = "shard-00001.safetensors";

/// Saves two tensors, one of them in two pieces, in two files; all elements are `value`.
void save(const fs::path& folder, float value) {
  const std::vector<float> values(800, value);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  write_checkpoint(folder, {{"dense/kernel", "F32", {20, 40}}, {"dense/bias", "F32", {40}}},
                   {{"dense/kernel", {0, 0}, {10, 40}, bytes.first(1600)},
                    {"dense/kernel", {10, 0}, {20, 40}, bytes.first(1600)},
                    {"dense/bias", {0}, {40}, bytes.first(160)}},
                   {{"epoch", 3}, {"note", "of a run"}}, {.max_file_bytes = 4096});
}

/// Returns the text of the FileError from opening and reading everything, or "".
std::string load_error(const fs::path& folder) {
  try {
    const CheckpointReader reader(folder);
    reader.verify();
    for (const CheckpointTensor& tensor : reader.tensors()) {
      std::vector<float> values(static_cast<size_t>(numel(tensor.shape)));
      reader.read(tensor.name, Shape(tensor.shape.size(), 0), tensor.shape,
                  std::as_writable_bytes(std::span(values)));
    }
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> files_of(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

void put_byte(const fs::path& file, size_t at, char byte) {
  std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(static_cast<std::streamoff>(at));
  out.put(byte);
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

void check_error(const std::string& error, const std::string& file) {
  CHECK_THAT(error, Contains(file));
  CHECK(error.size() < 1000);
  CHECK(error.find('\n') == std::string::npos);
}

/// Writes an index with a matching checksum.
void write_index(const fs::path& folder, const std::string& text) {
  test::write_file(folder / checkpoint_index_file, text);
  test::write_file(folder / checkpoint_checksum_file, checkpoint_checksum_text(text));
}

using Change = std::function<void(Json&)>;

Json& tensor(Json& index, size_t number) { return index["tensors"][number]; }
Json& piece(Json& index, size_t number) { return index["tensors"][0]["pieces"][number]; }

/// Changes of the index and the expected error texts.
const std::vector<std::pair<Change, std::string>> hostile{
    {[](Json& j) { j["version"] = 2; }, "needs a Tessera that reads >= 2"},
    {[](Json& j) { j["version"] = 0; }, "a version of at least 1"},
    {[](Json& j) { j["version"] = "1"; }, "version"},
    {[](Json& j) { j["format"] = "other"; }, "\"other\""},
    {[](Json& j) { j.erase("format"); }, "format"},
    {[](Json& j) { j.erase("state"); }, "state"},
    {[](Json& j) { j["extra"] = 1; }, "extra"},
    {[](Json& j) { j = Json::array(); }, "an object"},
    {[](Json& j) { tensor(j, 0)["extra"] = 1; }, "tensors[0]"},
    {[](Json& j) { piece(j, 0)["extra"] = 1; }, "pieces[0]"},
    {[](Json& j) { j["shards"][0]["extra"] = 1; }, "shards[0]"},
    {[](Json& j) { tensor(j, 0)["name"] = 5; }, "tensors[0].name"},
    {[](Json& j) { tensor(j, 1)["name"] = "dense/kernel"; }, "\"dense/kernel\" twice"},
    {[](Json& j) { tensor(j, 1)["name"] = "dense/kernels"; }, "tensor \"dense/bias\""},
    {[](Json& j) { tensor(j, 0)["dtype"] = "F31"; }, "\"F31\""},
    {[](Json& j) { tensor(j, 0)["dtype"] = "F4"; }, "\"F4\""},
    {[](Json& j) { tensor(j, 0)["dtype"] = "I32"; }, "dtype I32"},
    {[](Json& j) {
       tensor(j, 0)["shape"] = {-20, 40};
     },
     "(-20, 40)"},
    {[](Json& j) {
       tensor(j, 0)["shape"] = {20.5, 40};
     },
     "shape[0]"},
    {[](Json& j) {
       tensor(j, 0)["shape"] = {uint64_t{1} << 63, 40};
     },
     "shape[0]"},
    {[](Json& j) {
       tensor(j, 0)["shape"] = {int64_t{1} << 40, int64_t{1} << 40};
     },
     "2^61"},
    {[](Json& j) {
       tensor(j, 0)["shape"] = {int64_t{1} << 40, 40};
     },
     "[0, 10), [10, 20)"},
    {[](Json& j) {
       tensor(j, 0)["shape"] = {20, 41};
     },
     "along axis 1"},
    {[](Json& j) {
       tensor(j, 0)["shape"] = {20, 40, 1};
     },
     "(20, 40, 1)"},
    {[](Json& j) { tensor(j, 0)["pieces"] = Json::array(); }, "no piece"},
    {[](Json& j) { tensor(j, 0)["pieces"].erase(0); }, "[10, 20) along axis 0"},
    {[](Json& j) { piece(j, 1) = piece(j, 0); }, "[0, 10) along axis 0"},
    {[](Json& j) { tensor(j, 0)["pieces"].push_back(piece(j, 0)); }, "3 pieces for a grid of 2"},
    {[](Json& j) {
       piece(j, 0)["end"] = {11, 40};
     },
     "[0, 11), [10, 20)"},
    {[](Json& j) {
       piece(j, 0)["end"] = {9, 40};
     },
     "[0, 9), [10, 20)"},
    {[](Json& j) {
       piece(j, 0)["end"] = {0, 40};
     },
     "(0, 0) to (0, 40)"},
    {[](Json& j) {
       piece(j, 0)["begin"] = {-1, 0};
     },
     "(-1, 0) to (10, 40)"},
    {[](Json& j) { piece(j, 0)["begin"] = {0}; }, "(0,) to (10, 40)"},
    {[](Json& j) {
       piece(j, 1)["end"] = {21, 40};
     },
     "(21, 40)"},
    {[](Json& j) { piece(j, 0)["shard"] = 2; }, "shard 2"},
    {[](Json& j) { piece(j, 0)["shard"] = uint64_t{1} << 63; }, "shard 9223372036854775808"},
    {[](Json& j) { piece(j, 0)["shard"] = -1; }, "shard"},
    {[](Json& j) { piece(j, 0)["shard"] = 1; }, shard0},
    {[](Json& j) { piece(j, 0)["checksums"] = Json::array(); }, "1 checksums"},
    {[](Json& j) { piece(j, 0)["checksums"][0] = "xyz"; }, "32 hexadecimal digits"},
    {[](Json& j) { piece(j, 0)["checksums"][0] = std::string(32, 'A'); }, "hexadecimal"},
    {[](Json& j) { piece(j, 0)["checksums"][0] = std::string(32, 'a'); }, "metadata"},
    {[](Json& j) { j["shards"][0]["bytes"] = 0; }, shard0},
    {[](Json& j) { j["shards"][0]["bytes"] = uint64_t{1} << 63; }, shard0},
    {[](Json& j) { j["shards"][1]["header_checksum"] = std::string(32, '0'); }, shard1},
    {[](Json& j) { j["shards"].erase(1); }, "shard 1"},
    {[](Json& j) { j["shards"].push_back(j["shards"][0]); }, "shard-00002"},
    {[](Json& j) { j["shards"] = nullptr; }, "shards"},
};

}  // namespace

TEST_CASE("every changed byte of a checkpoint is detected") {
  const test::TempFolder folder;
  const fs::path path = folder / "c";
  save(path, 1.5F);
  uint64_t size = 0;
  for (const std::string& name : files_of(path)) {
    const std::string bytes = test::read_file(path / name);
    size += bytes.size();
    const uint64_t header = bytes.size() < 2 ? 0 : 8 + 256 * (bytes[1] & 0xff) + (bytes[0] & 0xff);
    for (size_t at = 0; at < bytes.size(); ++at) {
      CAPTURE(name, at);
      put_byte(path / name, at, static_cast<char>(bytes[at] ^ (1 << at % 8)));
      const std::string error = load_error(path);
      const bool is_shard = name.starts_with("shard-");
      check_error(error, is_shard ? name : "index.");
      if (is_shard && at >= header) CHECK_THAT(error, Contains("tensor \"dense/"));
      put_byte(path / name, at, bytes[at]);
    }
  }
  CHECK(load_error(path).empty());
  CHECK(size > 4000);
}

TEST_CASE("a checkpoint with a truncated file is refused at every length") {
  const test::TempFolder folder;
  const fs::path path = folder / "c";
  save(path, 1.5F);
  for (const std::string& name : files_of(path)) {
    const std::string bytes = test::read_file(path / name);
    for (size_t length = bytes.size(); length-- > 0;) {
      CAPTURE(name, length);
      fs::resize_file(path / name, length);
      check_error(load_error(path), name.starts_with("shard-") ? name : "index.");
    }
    test::write_file(path / name, bytes);
  }
  CHECK(load_error(path).empty());
}

TEST_CASE("a checkpoint with bytes after the end of a file is refused") {
  const test::TempFolder folder;
  const fs::path path = folder / "c";
  save(path, 1.5F);
  const std::string zip = "PK\5\6" + std::string(18, '\0');
  for (const std::string& name : files_of(path)) {
    const std::string bytes = test::read_file(path / name);
    for (const std::string& more : {std::string(" "), std::string(1, '\0'), zip}) {
      test::write_file(path / name, bytes + more);
      check_error(load_error(path), name.starts_with("shard-") ? name : "index.");
    }
    test::write_file(path / name, bytes);
  }
  const std::string index = test::read_file(path / "index.json");
  write_index(path, index + zip);
  CHECK_THAT(load_error(path), Contains("index.json:2:"));
}

TEST_CASE("a checkpoint with a missing, swapped or foreign file is refused") {
  const test::TempFolder folder;
  const fs::path path = folder / "c";
  save(path, 1.5F);
  save(folder / "other", 2.5F);
  for (const std::string& name : files_of(path)) {
    CAPTURE(name);
    const std::string bytes = test::read_file(path / name);
    fs::remove(path / name);
    check_error(load_error(path), name);
    CHECK_THAT(load_error(path), Contains("No such file"));
    fs::create_directory(path / name);
    check_error(load_error(path), name);
    fs::remove(path / name);
    test::write_file(path / name, test::read_file(folder / "other" / name));
    check_error(load_error(path), name.starts_with("shard-") ? name : "index.");
    test::write_file(path / name, bytes);
  }
  fs::rename(path / shard0, folder / "x");
  fs::rename(path / shard1, path / shard0);
  fs::rename(folder / "x", path / shard1);
  check_error(load_error(path), shard0);
}

TEST_CASE("an inconsistent index is refused") {
  const test::TempFolder folder;
  const fs::path path = folder / "c";
  save(path, 1.5F);
  const Json index = parse_json(test::read_file(path / "index.json"), "index");
  for (size_t i = 0; i < hostile.size(); ++i) {
    const auto& [change, text] = hostile[i];
    Json changed = index;
    change(changed);
    CAPTURE(i, text);
    write_index(path, to_json_text(changed, -1));
    const std::string error = load_error(path);
    check_error(error, path.string());
    CHECK_THAT(error, Contains(text));
  }
  for (const std::string text : {"", "{", "[1,2", "\xff", "{\"format\":1,\"format\":1}"}) {
    write_index(path, text);
    check_error(load_error(path), "index.json");
  }
  write_index(path, std::string(100000, '['));
  check_error(load_error(path), "index.json");
  write_index(path, to_json_text(index, 2));
  CHECK(load_error(path).empty());
}

TEST_CASE("two pieces of the same name in a file are refused") {
  const test::TempFolder folder;
  const std::vector<float> values(4);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  CHECK_THROWS_AS(write_checkpoint(folder / "c", {{"a", "F32", {4}}, {"a[0:2]", "F32", {2}}},
                                   {{"a", {0}, {2}, bytes.first(8)},
                                    {"a", {2}, {4}, bytes.first(8)},
                                    {"a[0:2]", {0}, {2}, bytes.first(8)}},
                                   nullptr),
                  ConfigError);
}

TEST_CASE("a checkpoint of version 1 still loads") {
  const CheckpointReader reader(test::golden_path("checkpoint_v1"));
  reader.verify();
  CHECK(reader.state() == Json{{"epoch", 3}, {"note", "of a run"}});
  CHECK(reader.at("dense/kernel").shape == Shape{4, 3});
  std::vector<float> kernel(6);
  reader.read("dense/kernel", {1, 1}, {4, 3}, std::as_writable_bytes(std::span(kernel)));
  CHECK(kernel == std::vector<float>{4, 5, 7, 8, 10, 11});
  std::vector<int64_t> step(1);
  reader.read("step", {}, {}, std::as_writable_bytes(std::span(step)));
  CHECK(step[0] == 42);
}

}  // namespace checkpoint_damage_test
