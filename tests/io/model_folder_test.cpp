#include <tessera/framework/io/internal/model_folder.hpp>

#include <algorithm>
#include <filesystem>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/owner.hpp>

#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"
#include "tests/support/owners.hpp"

namespace model_folder_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

void make_folder(const fs::path& path, const std::string& file = "config.json") {
  fs::create_directory(path);
  test::write_file(path / file, "{}");
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("a model folder replaces another one if it is committed, and only then") {
  const test::TempFolder root;
  make_folder(root / "m", "metadata.json");
  {
    const ModelFolder folder(root / "m");
    test::write_file(folder.temporary_path() + "/config.json", "{}");
  }
  CHECK(names_in(root / "m") == std::vector<std::string>{"metadata.json"});
  CHECK(names_in(root.path()) == std::vector<std::string>{"m"});
  {
    ModelFolder folder(std::string(root / "m") + "/");
    test::write_file(folder.temporary_path() + "/config.json", "{}");
    folder.commit();
  }
  CHECK(names_in(root / "m") == std::vector<std::string>{"config.json"});
  CHECK(names_in(root.path()) == std::vector<std::string>{"m"});
}

TEST_CASE("a folder that is no model folder is not replaced") {
  const test::TempFolder root;
  make_folder(root / "m", "letters.txt");
  CHECK_THAT(test::error_line([&] { ModelFolder(root / "m"); }),
             Contains("no other files. Received: \"letters.txt\"."));
  test::write_file(root / "f", "text");
  CHECK_THAT(test::error_line([&] { ModelFolder(root / "f"); }), Contains("Received: a file."));
  CHECK_THAT(test::error_line([&] { ModelFolder(root / "none/m"); }), Contains("none/m] "));
  // This includes a folder that appears while the model is written.
  ModelFolder folder(root / "late");
  make_folder(root / "late", "letters.txt");
  CHECK_THAT(test::error_line([&] { folder.commit(); }), Contains("\"letters.txt\""));
  CHECK(names_in(root / "late") == std::vector<std::string>{"letters.txt"});
}

TEST_CASE("folders left by killed processes are removed by the next save; others stay") {
  const test::TempFolder root;
  const auto name = [](const std::string& number) { return ".tessera-" + number + ".tmp"; };
  make_folder(root / name(test::ended_number()));
  const std::vector<std::string> others{new_temporary_name(), name(test::elsewhere_number()), "tmp",
                                        ".tessera-x.tmp"};
  for (const std::string& other : others) make_folder(root / other);
  fs::create_directory_symlink(root / "tmp", root / name(test::ended_number(1)));
  ModelFolder folder(root / "m");
  folder.commit();
  std::vector<std::string> expected = others;
  expected.push_back("m");
  expected.push_back(name(test::ended_number(1)));
  std::sort(expected.begin(), expected.end());
  CHECK(names_in(root.path()) == expected);
  CHECK(names_in(root / "tmp") == std::vector<std::string>{"config.json"});
}

}  // namespace model_folder_test
