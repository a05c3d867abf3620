#include <tessera/framework/io/format/hdf5_file.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/rectangle_runs.hpp>

#include "tests/support/error_line.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/files.hpp"

namespace hdf5_writing_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

const std::vector<std::string> dtypes{"F64", "F32", "F16", "BF16", "I64", "I32", "I16",
                                      "I8",  "U64", "U32", "U16",  "U8",  "BOOL"};

/// Makes groups with datasets of every dtype and several shapes.
void make_tree(std::vector<Hdf5Group>& groups, std::vector<Hdf5Dataset>& datasets) {
  groups = {{"", Json::object()}, {"/layers", Json::object()}, {"/layers/vars", {{"name", "d"}}}};
  groups[1].attributes = {
      {"names", {"a", "caf\xc3\xa9", ""}}, {"none", Json::array()}, {"number", -3}};
  const std::vector<Shape> shapes{{}, {3}, {2, 5}, {0, 4}, {1, 2, 3}};
  for (size_t i = 0; i < dtypes.size(); ++i) {
    Hdf5Dataset& dataset = datasets.emplace_back();
    dataset.path = str("/layers/vars/", i);
    dataset.dtype = dtypes[i];
    dataset.shape = shapes[i % shapes.size()];
    if (dtypes[i] == "BF16") dataset.attributes["dtype"] = "bfloat16";
  }
}

std::string data_of(const Hdf5Dataset& dataset, size_t seed) {
  std::string data(bytes_of(dataset, ""), '\0');
  for (size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<char>(dataset.dtype == "BOOL" ? i % 2 : (i + 1) * (seed + 3));
  }
  return data;
}

}  // namespace

TEST_CASE("a laid out and filled file is read back, also in the middle of another file") {
  for (const uint64_t base : {0, 4321}) {
    CAPTURE(base);
    const test::TempFolder folder;
    const std::string path = folder / "laid.h5";
    test::write_file(path, std::string(base, 'b'));
    const auto file = std::make_shared<FileDescriptor>(open_descriptor(path, O_RDWR));
    std::vector<Hdf5Group> groups;
    std::vector<Hdf5Dataset> datasets;
    make_tree(groups, datasets);
    const uint64_t size = lay_out_hdf5(*file, base, path, groups, datasets);
    uint64_t end = 0;
    for (size_t i = 0; i < datasets.size(); ++i) {
      const std::string data = data_of(datasets[i], i);
      REQUIRE(datasets[i].offset.has_value());
      const auto at = static_cast<off_t>(base + *datasets[i].offset);
      CHECK(::pwrite(file->get(), data.data(), data.size(), at) ==
            static_cast<ssize_t>(data.size()));
      end = std::max(end, *datasets[i].offset + data.size());
    }
    CHECK(end <= size);
    REQUIRE(::ftruncate(file->get(), static_cast<off_t>(base + size)) == 0);
    const Hdf5File read(file, {base, size}, path);
    REQUIRE(read.datasets().size() == datasets.size());
    for (size_t i = 0; i < datasets.size(); ++i) {
      CAPTURE(datasets[i].path);
      const Hdf5Dataset* found = read.find(datasets[i].path);
      REQUIRE(found != nullptr);
      CHECK(found->dtype == datasets[i].dtype);
      CHECK(found->shape == datasets[i].shape);
      CHECK(found->attributes == datasets[i].attributes);
      std::string data(bytes_of(*found, path), '?');
      read.read(*found, full_rectangle(found->shape), std::as_writable_bytes(std::span(data)));
      CHECK(data == data_of(datasets[i], i));
    }
    for (const Hdf5Group& group : groups) {
      const Hdf5Group* found = read.find_group(group.path);
      REQUIRE(found != nullptr);
      CHECK(found->attributes == group.attributes);
    }
    CHECK(test::read_file(path).substr(0, base) == std::string(base, 'b'));
  }
}

TEST_CASE("equal trees give equal bytes") {
  const test::TempFolder folder;
  std::string bytes[2];
  for (std::string& one : bytes) {
    // Waits for another second of the clock.
    if (!bytes[0].empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    test::write_file(folder / "x", "");
    const FileDescriptor file = open_descriptor(folder / "x", O_RDWR);
    std::vector<Hdf5Group> groups;
    std::vector<Hdf5Dataset> datasets;
    make_tree(groups, datasets);
    const uint64_t size = lay_out_hdf5(file, 0, folder / "x", groups, datasets);
    REQUIRE(::ftruncate(file.get(), static_cast<off_t>(size)) == 0);
    one = test::read_file(folder / "x");
  }
  CHECK(bytes[0].starts_with("\x89HDF\r\n\x1a\n"));
  // CHECK would print all the bytes.
  REQUIRE(bytes[0].size() == bytes[1].size());
  CHECK(std::equal(bytes[0].begin(), bytes[0].end(), bytes[1].begin()));
}

TEST_CASE("a file with too many attributes is refused") {
  const test::TempFolder folder;
  test::write_file(folder / "x", "");
  const auto file = std::make_shared<FileDescriptor>(open_descriptor(folder / "x", O_RDWR));
  std::vector<Hdf5Dataset> datasets;
  Json attributes = Json::object();
  for (int i = 0; i <= 10000; ++i) attributes.push_back({str("a", i), i});
  const uint64_t size = lay_out_hdf5(*file, 0, folder / "x", {{"", attributes}}, datasets);
  REQUIRE(::ftruncate(file->get(), static_cast<off_t>(size)) == 0);
  CHECK_THAT(test::error_line([&] {
               Hdf5File(file, {0, size}, folder / "x");
             }),
             Contains("its attributes cannot be read"));
}

TEST_CASE("an error of the HDF5 library while writing is reported") {
  const test::TempFolder folder;
  const std::string path = folder / "x.h5";
  test::write_file(path, "");
  const FileDescriptor file = open_descriptor(path, O_RDWR);
  std::vector<Hdf5Group> groups{{"", Json::object()}, {"/g", Json::object()}};
  std::vector<Hdf5Dataset> datasets;
  const auto lay_out = [&] { lay_out_hdf5(file, 0, path, groups, datasets); };
  {
    const test::FileSizeLimit limit(300);
    CHECK_THAT(test::error_line(lay_out), Contains("[" + path + "] the file must be writable"));
  }
  groups.push_back({"/none/h", Json::object()});
  CHECK_THAT(test::error_line(lay_out),
             Contains("the file must be writable") && Contains("/none/h"));
  groups.back() = {"/g", Json::object()};
  CHECK_THAT(test::error_line(lay_out), Contains("/g"));
  groups.pop_back();
  groups.back().attributes["name"] = std::string(70000, 'n');
  CHECK(test::error_line(lay_out) == "no error");
  datasets.push_back({.path = "/x", .dtype = "F4", .shape = {2}});
  CHECK_THAT(test::error_line(lay_out), Contains("no type for \"F4\""));
}

}  // namespace hdf5_writing_test
