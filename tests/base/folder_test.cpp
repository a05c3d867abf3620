#include <tessera/framework/base/internal/folder.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace folder_test {

using namespace tessera;
using namespace tessera::detail;

namespace fs = std::filesystem;

TEST_CASE("paths are joined and cut at slashes") {
  CHECK(path_in("a", "b") == "a/b");
  CHECK(path_in("a/", "b") == "a/b");
  CHECK(path_in("", "b") == "b");
  CHECK(parent_of("a/b") == "a");
  CHECK(parent_of("a//b") == "a");
  CHECK(parent_of("a/b/") == "a/b");
  CHECK(parent_of("/b") == "/");
  CHECK(parent_of("b").empty());
}

TEST_CASE("a folder's names are read, or the reason is said") {
  const test::TempFolder folder;
  const std::string root = folder.path().string();
  std::error_code error = std::make_error_code(std::errc::io_error);
  CHECK(names_in(root, error).empty());
  CHECK_FALSE(error);
  test::write_file(path_in(root, "b"), "");
  test::write_file(path_in(root, ".a"), "");
  std::vector<std::string> names = names_in(root, error);
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{".a", "b"});
  CHECK(names_in(path_in(root, "missing"), error).empty());
  CHECK(error == std::errc::no_such_file_or_directory);
  CHECK(names_in(path_in(root, "b"), error).empty());
  CHECK(error == std::errc::not_a_directory);
}

TEST_CASE("missing folders are created, and removed with all they contain") {
  const test::TempFolder folder;
  const std::string root = path_in(folder.path().string(), "a"), inner = path_in(root, "b/c");
  CHECK(make_folders(inner));
  CHECK(make_folders(inner));
  const std::string file = path_in(inner, "file");
  test::write_file(file, "");
  CHECK_FALSE(make_folders(file));
  CHECK(errno == ENOTDIR);
  const std::string outside = path_in(folder.path().string(), "outside");
  CHECK(make_folders(outside));
  test::write_file(path_in(outside, "stays"), "");
  fs::create_symlink(outside, path_in(inner, "link"));

  CHECK(is_folder(inner));
  CHECK_FALSE(is_folder(path_in(inner, "link")));
  CHECK(leads_to_folder(path_in(inner, "link")));
  CHECK(leads_to_folder(inner));
  CHECK_FALSE(leads_to_folder(file));
  CHECK(is_regular_file(file));
  CHECK_FALSE(is_regular_file(inner));
  CHECK(real_path(path_in(inner, "link")) == real_path(outside));
  CHECK_FALSE(real_path(path_in(inner, "missing")));
  CHECK(remove_tree(root));
  CHECK_FALSE(fs::exists(root));
  CHECK(fs::exists(path_in(outside, "stays")));
  CHECK_FALSE(remove_tree(root));
}

}  // namespace folder_test
