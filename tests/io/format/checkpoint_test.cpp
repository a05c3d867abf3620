#include <tessera/framework/io/format/checkpoint_reader.hpp>
#include <tessera/framework/io/format/checkpoint_writer.hpp>

#include <sys/stat.h>

#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/safetensors.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace checkpoint_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

/// An I32 tensor whose elements are their own indices, and rectangles of it.
class Numbered {
 public:
  explicit Numbered(Shape shape) : shape_(std::move(shape)) {}

  const Shape& shape() const { return shape_; }

  std::vector<int32_t> part(const Shape& begin, const Shape& end) const {
    std::vector<int32_t> values{0};
    for (size_t axis = 0; axis < shape_.size(); ++axis) {
      std::vector<int32_t> longer;
      for (const int32_t value : values) {
        for (int64_t i = begin[axis]; i < end[axis]; ++i) {
          longer.push_back(static_cast<int32_t>(value * shape_[axis] + i));
        }
      }
      values = longer;
    }
    return values;
  }

 private:
  Shape shape_;
};

/// Writes "x" split at these positions along each axis.
void write_cut(const std::string& folder, const Numbered& x,
               const std::vector<std::vector<int64_t>>& cuts,
               const CheckpointWriterOptions& options = {}) {
  std::vector<std::pair<Shape, Shape>> areas{{}};
  for (const auto& axis : cuts) {
    std::vector<std::pair<Shape, Shape>> longer;
    for (const auto& [begin, end] : areas) {
      for (size_t i = 0; i + 1 < axis.size(); ++i) {
        longer.emplace_back(begin, end);
        longer.back().first.push_back(axis[i]);
        longer.back().second.push_back(axis[i + 1]);
      }
    }
    areas = longer;
  }
  std::vector<std::vector<int32_t>> values;
  std::vector<CheckpointPiece> pieces;
  for (const auto& [begin, end] : areas) values.push_back(x.part(begin, end));
  for (size_t i = 0; i < areas.size(); ++i) {
    pieces.push_back({"x", areas[i].first, areas[i].second, std::as_bytes(std::span(values[i]))});
  }
  write_checkpoint(folder, {{"x", "I32", x.shape()}}, pieces, {{"step", 1}}, options);
}

std::vector<int32_t> read_part(const CheckpointReader& reader, const Shape& begin,
                               const Shape& end) {
  size_t count = 1;
  for (size_t axis = 0; axis < begin.size(); ++axis) {
    count *= static_cast<size_t>(end[axis] - begin[axis]);
  }
  std::vector<int32_t> values(count);
  reader.read("x", begin, end, std::as_writable_bytes(std::span(values)));
  return values;
}

std::string write_error(const std::string& folder, const std::vector<CheckpointTensor>& tensors,
                        const std::vector<CheckpointPiece>& pieces,
                        const CheckpointWriterOptions& options = {}) {
  try {
    write_checkpoint(folder, tensors, pieces, nullptr, options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a checkpoint of tensors and state reads back") {
  const test::TempFolder folder;
  const std::string path = (folder / "a/b/step-000001").string();
  const std::vector<double> kernel{1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> step{7};
  const std::string odd = "../x/\xf0\x9f\x98\x80" + std::string(1, '\0') + std::string(3000, 'n');
  const Json state{{"epoch", 3}, {"loss", 0.1}, {"names", {"a", "\u00e9"}}};
  write_checkpoint(path, {{"kernel", "F64", {2, 3}}, {odd, "I64", {}}, {"none", "F16", {0, 5}}},
                   {{"kernel", {0, 0}, {2, 3}, std::as_bytes(std::span(kernel))},
                    {odd, {}, {}, std::as_bytes(std::span(step))},
                    {"none", {0, 0}, {0, 5}, {}}},
                   state);
  const CheckpointReader reader(path);
  CHECK(reader.folder() == path);
  CHECK(reader.state() == state);
  CHECK(reader.tensors().size() == 3);
  CHECK(reader.tensors()[1].name == odd);
  CHECK(reader.at("kernel").shape == Shape{2, 3});
  CHECK(reader.at("kernel").dtype == "F64");
  std::vector<double> values(6);
  reader.read("kernel", {0, 0}, {2, 3}, std::as_writable_bytes(std::span(values)));
  CHECK(values == kernel);
  std::vector<int64_t> scalar(1);
  reader.read(odd, {}, {}, std::as_writable_bytes(std::span(scalar)));
  CHECK(scalar == step);
  reader.read("none", {0, 0}, {0, 5}, {});
  reader.verify();
  CHECK(reader.find("kernels") == nullptr);
  CHECK_THROWS_WITH(reader.at("kernels"), Contains("write \"kernel\"") && Contains(path));
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path() / "a/b")) {
    files.insert(entry.path().filename().string());
  }
  CHECK(files == std::set<std::string>{"step-000001", "index.json", "index.xxh128",
                                       "shard-00000.safetensors"});
}

TEST_CASE("any rectangle of a tensor can be read from any pieces") {
  const test::TempFolder folder;
  const Numbered x({5, 4, 6});
  const std::vector<std::vector<std::vector<int64_t>>> layouts{
      {{0, 5}, {0, 4}, {0, 6}},
      {{0, 1, 3, 5}, {0, 4}, {0, 6}},
      {{0, 5}, {0, 2, 4}, {0, 3, 4, 6}},
      {{0, 2, 5}, {0, 1, 2, 3, 4}, {0, 5, 6}}};
  int number = 0;
  for (const auto& cuts : layouts) {
    const std::string path = (folder / str("c", number++)).string();
    write_cut(path, x, cuts);
    const CheckpointReader reader(path);
    for (const Shape& begin : {Shape{0, 0, 0}, Shape{1, 0, 2}, Shape{0, 3, 0}, Shape{4, 1, 5}}) {
      for (const Shape& end : {Shape{5, 4, 6}, Shape{5, 4, 6}, Shape{4, 4, 6}, Shape{5, 4, 6}}) {
        if (end[0] < begin[0]) continue;
        CAPTURE(number, begin, end);
        CHECK(read_part(reader, begin, end) == x.part(begin, end));
      }
    }
    CHECK(read_part(reader, {2, 1, 1}, {3, 2, 3}) == x.part({2, 1, 1}, {3, 2, 3}));
    CHECK(read_part(reader, {2, 1, 1}, {2, 4, 6}).empty());
  }
}

TEST_CASE("a reader takes only the chunks that it needs") {
  const test::TempFolder folder;
  const std::string path = (folder / "c").string();
  const Numbered x({1500, 1024});
  write_cut(path, x, {{0, 750, 1500}, {0, 1024}});
  const auto cost = [&](const Shape& begin, const Shape& end) {
    const CheckpointReader reader(path);
    CHECK(read_part(reader, begin, end) == x.part(begin, end));
    return reader.bytes_read();
  };
  const uint64_t chunk = 1 << 20;
  const uint64_t row = 4096;
  CHECK(cost({0, 0}, {1, 1}) == chunk);
  CHECK(cost({255, 0}, {257, 1024}) == 2 * chunk);
  CHECK(cost({750, 0}, {1500, 1024}) == 750 * row);
  CHECK(cost({700, 5}, {760, 6}) == 750 * row - 2 * chunk + chunk);
  CHECK(cost({0, 0}, {1500, 1}) == 1500 * row);
}

TEST_CASE("shares of a read make up the full tensor, and none reads another's chunks") {
  const test::TempFolder folder;
  const Numbered x({1500, 1024});
  write_cut(folder / "c", x, {{0, 750, 1500}, {0, 1024}});
  const CheckpointReader reader(folder / "c");
  const Shape begin = {100, 3}, end = {1400, 1024};
  std::vector<int32_t> values(1300 * 1021, -1);
  const auto bytes = std::as_writable_bytes(std::span(values));
  reader.read("x", begin, end, bytes, {1, 2});
  CHECK(values[0] == -1);
  reader.read("x", begin, end, bytes, {0, 2});
  CHECK(values == x.part(begin, end));
  CHECK(reader.bytes_read() == 1500 * 4096);
}

TEST_CASE("shard files respect the maximum size and are plain safetensors files") {
  const test::TempFolder folder;
  const std::string path = (folder / "c").string();
  const Numbered x({7, 3, 1000});
  write_cut(path, x, {{0, 4, 7}, {0, 1, 3}, {0, 1000}}, {.max_file_bytes = 4096});
  const CheckpointReader reader(path);
  reader.verify();
  CHECK(read_part(reader, {0, 0, 0}, x.shape()) == x.part({0, 0, 0}, x.shape()));
  CHECK(read_part(reader, {1, 0, 900}, {7, 2, 1000}) == x.part({1, 0, 900}, {7, 2, 1000}));
  int files = 0;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() != ".safetensors") continue;
    ++files;
    CHECK(entry.file_size() <= 4096);
    const SafetensorsFile file(entry.path().string());
    CHECK(file.metadata().at("format") == "tessera");
    for (const SafeTensor& tensor : file.tensors()) CHECK(tensor.name.starts_with("x["));
  }
  CHECK(files >= 21);
  const SafetensorsFile first(path + "/shard-00000.safetensors");
  const std::vector<int32_t> expected = x.part({0, 0, 0}, {1, 1, first.tensors()[0].shape[2]});
  CHECK(first.tensors()[0].name == str("x[0:1, 0:1, 0:", expected.size(), "]"));
  CHECK(std::equal(first.tensors()[0].data.begin(), first.tensors()[0].data.end(),
                   std::as_bytes(std::span(expected)).begin()));
}

TEST_CASE("a tensor in one piece keeps its name") {
  const test::TempFolder folder;
  const std::string path = (folder / "c").string();
  write_cut(path, Numbered({3, 2}), {{0, 3}, {0, 2}});
  CHECK(SafetensorsFile(path + "/shard-00000.safetensors").at("x").shape == Shape{3, 2});
}

TEST_CASE("a checkpoint has the file modes that the umask allows") {
  const test::TempFolder folder;
  const std::string path = (folder / "c").string();
  const mode_t old_mask = ::umask(0027);
  write_cut(path, Numbered({2}), {{0, 2}});
  ::umask(old_mask);
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0750);
  REQUIRE(::stat((path + "/index.json").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0640);
}

TEST_CASE("a checkpoint that is open stays readable when it is replaced or removed") {
  const test::TempFolder folder;
  const std::string path = (folder / "c").string();
  const Numbered x({4});
  write_cut(path, x, {{0, 4}});
  const CheckpointReader reader(path);
  write_cut(path, Numbered({8}), {{0, 8}});
  fs::remove_all(path);
  CHECK(read_part(reader, {0}, {4}) == x.part({0}, {4}));
}

TEST_CASE("an invalid checkpoint is not written") {
  const test::TempFolder folder;
  const std::string path = (folder / "c").string();
  const std::vector<float> four{1, 2, 3, 4};
  const std::span<const std::byte> bytes = std::as_bytes(std::span(four));
  const auto error = [&](const CheckpointTensor& tensor,
                         const std::vector<CheckpointPiece>& pieces) {
    return write_error(path, {tensor}, pieces);
  };
  const CheckpointTensor a{"a", "F32", {4}};
  const auto piece = [&](int64_t begin, int64_t end) {
    return CheckpointPiece{"a", {begin}, {end}, bytes.first(4 * (end - begin))};
  };
  CHECK_THAT(error(a, {}), Contains("tensor \"a\"") && Contains("no piece"));
  CHECK_THAT(error(a, {piece(0, 3)}), Contains("[0, 3) along axis 0"));
  CHECK_THAT(error(a, {piece(0, 3), piece(2, 4)}), Contains("[0, 3), [2, 4)"));
  CHECK_THAT(error(a, {piece(0, 2), piece(3, 4)}), Contains("[0, 2), [3, 4)"));
  CHECK_THAT(error(a, {piece(0, 4), piece(0, 4)}), Contains("2 pieces for a grid of 1"));
  CHECK_THAT(error(a, {{"a", {0}, {5}, bytes}}), Contains("(0,) to (5,)"));
  CHECK_THAT(error(a, {{"a", {0, 0}, {4, 1}, bytes}}), Contains("(0, 0) to (4, 1)"));
  CHECK_THAT(error(a, {{"a", {0}, {4}, bytes.first(15)}}), Contains("16 bytes. Received: 15"));
  CHECK_THAT(error(a, {{"b", {0}, {4}, bytes}}), Contains("tensor \"b\""));
  CHECK_THAT(error({"a", "float32", {4}}, {}), Contains("\"float32\""));
  CHECK_THAT(error({"a", "F4", {4}}, {}), Contains("whole bytes"));
  CHECK_THAT(error({"a", "F32", {-4}}, {}), Contains("(-4,)"));
  CHECK_THAT(error({"a", "F32", {int64_t{1} << 62, 4}}, {}), Contains("smaller extents"));
  CHECK_THAT(error({"\xff", "U8", {16}}, {{"\xff", {0}, {16}, bytes}}), Contains("UTF-8"));
  CHECK_THAT(write_error(path, {a, a}, {piece(0, 4)}), Contains("name twice"));
  CHECK_THAT(write_error(path, {a}, {piece(0, 4)}, {.max_file_bytes = 100}), Contains("4096"));
  CHECK_THAT(error({"\xff", "U8", {0}}, {}), Contains("UTF-8"));
  CHECK_THAT(error({"__metadata__", "U8", {0}}, {}), Contains("rename"));
  CHECK_THAT(write_error("", {a}, {piece(0, 4)}), Contains("has a name"));
  CHECK_THAT(write_error("x/..", {a}, {piece(0, 4)}), Contains("has a name"));
  Json deep = 1;
  for (int i = 0; i < 64; ++i) deep = Json::array({deep});
  CHECK_THROWS_WITH(write_checkpoint(path, {}, {}, deep), Contains("state") && Contains("64"));
  CHECK(fs::is_empty(folder.path()));
  write_checkpoint(path, {}, {}, deep[0]);
  CHECK(CheckpointReader(path).state() == deep[0]);
}

TEST_CASE("reading outside a checkpoint's tensor is an error") {
  const test::TempFolder folder;
  const std::string path = (folder / "c").string();
  write_cut(path, Numbered({4}), {{0, 4}});
  const CheckpointReader reader(path);
  std::vector<std::byte> out(8);
  CHECK_THROWS_WITH(reader.read("x", {3}, {5}, out), Contains("tensor \"x\"") && Contains("(5,)"));
  CHECK_THROWS_WITH(reader.read("x", {-1}, {1}, out), Contains("(-1,)"));
  CHECK_THROWS_WITH(reader.read("x", {0}, {3}, out), Contains("room for 12 bytes. Received: 8"));
  CHECK_THROWS_AS(reader.read("y", {0}, {2}, out), FileError);
  CHECK_THROWS_WITH(CheckpointReader((folder / "none").string()), Contains("No such file"));
}

}  // namespace checkpoint_test
