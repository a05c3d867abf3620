#include <tessera/framework/io/format/hdf5_file.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/rectangle_runs.hpp>
#include <tessera/framework/io/format/safetensors_header.hpp>

#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"
#include "tests/support/hdf5_cases.hpp"

namespace hdf5_file_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

std::string read_text(const Hdf5File& file, const Hdf5Dataset& dataset, const Rectangle& area) {
  uint64_t bytes = *safetensors_bits(dataset.dtype) / 8;
  for (const int64_t extent : area.shape()) bytes *= static_cast<uint64_t>(extent);
  std::string text(bytes, '?');
  file.read(dataset, area, std::as_writable_bytes(std::span(text)));
  return text;
}

std::string case_path(const test::TempFolder& folder, const std::string& bytes) {
  const std::string path = folder / "case.h5";
  test::write_file(path, bytes);
  return path;
}

/// Returns the processes of tessera-hdf5 that this process has started.
std::vector<pid_t> programs() {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string status;
    try {
      status = test::read_file(entry.path() / "status");
    } catch (const std::runtime_error&) {
      continue;  // The process has ended meanwhile.
    }
    const bool own =
        status.find("\nPPid:\t" + std::to_string(::getpid()) + "\n") != std::string::npos;
    if (own && status.starts_with("Name:\ttessera-hdf5\n")) found.push_back(std::stoi(name));
  }
  return found;
}

/// Compares the datasets of a file with the golden ones by path.
void check_datasets(const Hdf5File& file, const Json& expected) {
  REQUIRE(file.datasets().size() == expected.size());
  uint64_t bytes = 0;
  for (const Json& entry : expected) {
    const auto path = entry["path"].get<std::string>();
    CAPTURE(path);
    const Hdf5Dataset* found = file.find(path);
    REQUIRE(found != nullptr);
    CHECK(found->dtype == entry["dtype"].get<std::string>());
    if (found->dtype.empty()) continue;
    CHECK(found->shape == entry["shape"].get<Shape>());
    const std::string data = test::from_hex(entry["data"].get<std::string>());
    CHECK(read_text(file, *found, full_rectangle(found->shape)) == data);
    bytes += data.size();
    CHECK(file.bytes_read() == bytes);
  }
}

}  // namespace

TEST_CASE("datasets of HDF5 files are read, however they are stored") {
  const test::TempFolder folder;
  for (const test::Hdf5Case& one : test::hdf5_cases("good")) {
    CAPTURE(one.name);
    const Hdf5File file(case_path(folder, one.bytes));
    check_datasets(file, one.about["datasets"]);
  }
}

TEST_CASE("contiguous data is read without the helper program, compressed data with it") {
  const test::TempFolder folder;
  std::set<std::string> by_program;
  for (const test::Hdf5Case& one : test::hdf5_cases("good")) {
    const Hdf5File file(case_path(folder, one.bytes));
    for (const Hdf5Dataset& dataset : file.datasets()) {
      if (!dataset.dtype.empty() && !dataset.offset) by_program.insert(one.name);
    }
    CAPTURE(one.name);
    CHECK(programs().size() == by_program.count(one.name));
  }
  CHECK(by_program == std::set<std::string>{"chunks", "chunks never written", "compact", "empty",
                                            "empty in chunks", "five axes", "fletcher32",
                                            "gzip and shuffle", "highest byte first", "latest",
                                            "never written", "scalar, highest byte first",
                                            "scale and offset"});
}

TEST_CASE("any rectangle of a dataset can be read, without other bytes if it is contiguous") {
  const test::TempFolder folder;
  for (const char* name : {"contiguous", "chunks", "gzip and shuffle", "fletcher32"}) {
    const test::Hdf5Case one = test::hdf5_case("good", name);
    const std::string data = test::from_hex(one.about["datasets"][0]["data"].get<std::string>());
    const Hdf5File file(case_path(folder, one.bytes));
    const Hdf5Dataset& x = *file.find("/x");
    REQUIRE(x.shape == Shape{5, 7});
    uint64_t bytes = 0;
    for (const Rectangle& area : {Rectangle{{0, 0}, {5, 7}},
                                  {{2, 0}, {4, 7}},
                                  {{0, 3}, {5, 4}},
                                  {{1, 2}, {4, 6}},
                                  {{4, 6}, {5, 7}},
                                  {{3, 3}, {3, 5}}}) {
      CAPTURE(name, area.begin, area.end);
      std::string expected;
      for (int64_t row = area.begin[0]; row < area.end[0]; ++row) {
        const auto from = static_cast<size_t>(row * 7 + area.begin[1]) * 4;
        expected += data.substr(from, static_cast<size_t>(area.size(1)) * 4);
      }
      CHECK(read_text(file, x, area) == expected);
      bytes += x.offset || expected.empty() ? expected.size() : data.size();
      CHECK(file.bytes_read() == bytes);
    }
  }
}

TEST_CASE("a range of an open file can be read as an HDF5 file") {
  const test::TempFolder folder;
  for (const char* name : {"contiguous", "gzip and shuffle", "latest", "attributes"}) {
    CAPTURE(name);
    const test::Hdf5Case one = test::hdf5_case("good", name);
    const std::string path = case_path(folder, "a head" + one.bytes + std::string(5000, 'z'));
    const auto opened = std::make_shared<FileDescriptor>(open_descriptor(path, O_RDONLY));
    const Hdf5File file(opened, {6, one.bytes.size()}, "the part");
    check_datasets(file, one.about["datasets"]);
    CHECK_THAT(test::error_line([&] {
                 Hdf5File(opened, {5, one.bytes.size()}, "the part");
               }),
               Contains("[the part] an HDF5 file"));
    CHECK_THAT(test::error_line([&] {
                 Hdf5File(opened, {6, one.bytes.size() - 1}, "the part");
               }),
               Contains("[the part] an HDF5 file"));
  }
}

TEST_CASE("attributes are texts, numbers and lists of them; all others are null") {
  const test::TempFolder folder;
  const Hdf5File file(case_path(folder, test::hdf5_case("good", "attributes").bytes));
  const Hdf5Group* vars = file.find_group("/layers/dense/vars");
  REQUIRE(vars != nullptr);
  CHECK(vars->attributes == Json{{"bytes", "plain"},
                                 {"empty", nullptr},
                                 {"floats", {0.25, 4.0}},
                                 {"half", 0.5},
                                 {"list", {"a", "", "\xc3\xa9\n"}},
                                 {"name", "caf\xc3\xa9"},
                                 {"names", {"kernel:0", "bias:0"}},
                                 {"none", Json::array()},
                                 {"number", -5},
                                 {"numbers", {1, 2, 3}},
                                 {"truth", nullptr}});
  CHECK(file.find("/layers/dense/vars/0")->attributes == Json{{"name", "kernel"}});
  CHECK(file.groups().size() == 4);
  CHECK(file.find_group("") == &file.groups()[0]);
  CHECK(file.find_group("/layers/none") == nullptr);
  CHECK(file.find("/layers") == nullptr);
}

TEST_CASE("texts that are not UTF-8 do not prevent reading") {
  const test::TempFolder folder;
  const Hdf5File file(case_path(folder, test::hdf5_case("good", "names of other bytes").bytes));
  CHECK(file.groups()[0].attributes == Json{{"latin", "caf\xef\xbf\xbd"}});
  CHECK(file.find_group("/a\xef\xbf\xbd") != nullptr);
}

TEST_CASE("malicious files are refused in one line that names them") {
  const test::TempFolder folder;
  const std::vector<test::Hdf5Case> cases = test::hdf5_cases("refused");
  CHECK(cases.size() >= 25);
  for (const test::Hdf5Case& one : cases) {
    CAPTURE(one.name);
    const std::string path = case_path(folder, one.bytes);
    const std::string line = test::error_line([&] {
      const Hdf5File file(path);
      const Hdf5Dataset* x = file.find("/x");
      REQUIRE(x != nullptr);
      // Reads only the first element, which exists.
      std::string element(*safetensors_bits(x->dtype) / 8, '\0');
      const Rectangle first{Shape(x->shape.size(), 0), Shape(x->shape.size(), 1)};
      file.read(*x, first, std::as_writable_bytes(std::span(element)));
    });
    CHECK_THAT(line, Catch::Matchers::StartsWith("[" + path + "] "));
    CHECK_THAT(line, Contains(one.about["says"].get<std::string>()));
    CHECK(line.size() < 700);
  }
  CHECK(programs().empty());
}

TEST_CASE("a path that is no regular HDF5 file is refused at once") {
  const test::TempFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(test::error_line([&] { Hdf5File(folder / "pipe"); }), Contains("not a regular file"));
  CHECK_THAT(test::error_line([&] { Hdf5File(folder.path().string()); }),
             Contains("not a regular file"));
  CHECK_THAT(test::error_line([&] { Hdf5File(folder / "none"); }),
             Contains("none] ") && Contains("No such file or directory"));
  CHECK_THAT(test::error_line([] { Hdf5File("/dev/zero"); }), Contains("not a regular file"));
}

TEST_CASE("the helper program can open no other file") {
  const test::TempFolder folder;
  const Hdf5File file(case_path(folder, test::hdf5_case("good", "gzip and shuffle").bytes));
  REQUIRE(programs().size() == 1);
  const fs::path process = fs::path("/proc") / std::to_string(programs()[0]);
  const std::string status = test::read_file(process / "status");
  CHECK_THAT(status, Contains("\nSeccomp:\t2\n") && Contains("\nNoNewPrivs:\t1\n"));
  std::set<std::string> open;
  for (const auto& entry : fs::directory_iterator(process / "fd")) {
    open.insert(entry.path().filename().string() + " " +
                fs::read_symlink(entry.path()).string().substr(0, 7));
  }
  CHECK(open == std::set<std::string>{"0 socket:", "1 socket:", "2 /dev/nu",
                                      "3 " + folder.path().string().substr(0, 7)});
}

TEST_CASE("killing the helper program while it reads is an error that names the signal") {
  const test::TempFolder folder;
  const std::string path = case_path(folder, test::hdf5_case("good", "gzip and shuffle").bytes);
  const Hdf5File file(path);
  const Hdf5Dataset& x = *file.find("/x");
  CHECK(read_text(file, x, full_rectangle(x.shape)).size() == 140);
  REQUIRE(programs().size() == 1);
  ::kill(programs()[0], SIGKILL);
  const pid_t other = ::fork();
  if (other == 0) ::_exit(7);
  CHECK_THAT(
      test::error_line([&] { read_text(file, x, full_rectangle(x.shape)); }),
      Contains("[" + path + "] ") && Contains("kills the HDF5 process with signal 9 (Killed)"));
  CHECK_THAT(test::error_line([&] { read_text(file, x, full_rectangle(x.shape)); }),
             Contains("the HDF5 library has already refused"));
  // Other child processes are still left for their parent to wait for.
  int status = 0;
  CHECK(::waitpid(other, &status, 0) == other);
  CHECK(WEXITSTATUS(status) == 7);
}

TEST_CASE("a file that was truncated after it was opened is an error") {
  const test::TempFolder folder;
  const std::string bytes = test::hdf5_case("good", "contiguous").bytes;
  const std::string path = case_path(folder, bytes);
  const Hdf5File file(path);
  const Hdf5Dataset& x = *file.find("/x");
  REQUIRE(::truncate(path.c_str(), static_cast<off_t>(*x.offset + 20)) == 0);
  CHECK(read_text(file, x, {{0, 0}, {1, 5}}).size() == 20);
  CHECK_THAT(test::error_line([&] { read_text(file, x, full_rectangle(x.shape)); }),
             Contains("[" + path + "] ") && Contains("a shorter file"));
}

}  // namespace hdf5_file_test
