#include <tessera/datasets/files/resumable_file.hpp>

#include <filesystem>
#include <future>
#include <memory>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace resumable_file_test {

using namespace tessera;
using namespace tessera::detail;
using test::TempFolder;

namespace {

void append(ResumableFile& part, const std::string& text) {
  part.append(std::as_bytes(std::span(text)));
}

}  // namespace

TEST_CASE("a part file grows over several openings and is renamed at the end") {
  const TempFolder folder;
  const std::string path = folder / "a.part";
  {
    ResumableFile part(path);
    append(part, "hel");
  }
  ResumableFile part(path);
  CHECK(part.size() == 3);
  append(part, "lo");
  CHECK(part.sha256() == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
  part.rename_to(folder / "a");
  CHECK(test::read_file(folder / "a") == "hello");
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("an empty part is removed") {
  const TempFolder folder;
  const std::string path = folder / "a.part";
  {
    ResumableFile part(path);
    append(part, "hello");
    part.clear();
    CHECK(std::filesystem::exists(path));
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a process that waited for a part file gets the file that has its name by then") {
  const TempFolder folder;
  const std::string path = folder / "a.part";
  for (const bool replaced : {false, true}) {
    auto first = std::make_unique<ResumableFile>(path);
    auto second =
        std::async(std::launch::async, [&] { return std::make_unique<ResumableFile>(path); });
    CHECK(second.wait_for(std::chrono::milliseconds(100)) == std::future_status::timeout);
    append(*first, "old");
    std::filesystem::remove(path);
    if (replaced) test::write_file(path, "other");
    first.reset();
    const auto part = second.get();
    append(*part, "s");
    CHECK(test::read_file(path) == (replaced ? "others" : "s"));
    part->clear();
  }
}

TEST_CASE("a part file that cannot be written is an error") {
  const TempFolder folder;
  CHECK_THROWS_AS(ResumableFile(folder / "none/a.part"), FileError);
  std::filesystem::create_symlink(folder / "elsewhere", folder / "b.part");
  CHECK_THROWS_AS(ResumableFile(folder / "b.part"), FileError);
  CHECK_FALSE(std::filesystem::exists(folder / "elsewhere"));
  ResumableFile part(folder / "c.part");
  append(part, "c");
  CHECK_THROWS_AS(part.rename_to(folder / "none/c"), FileError);
}

}  // namespace resumable_file_test
