#include <tessera/datasets/files/folder_index.hpp>

#include <unistd.h>

#include <array>
#include <filesystem>

#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"

namespace folder_index_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 2> endings{".jpg", ".png"};

/// A folder of empty files.
class Files {
 public:
  explicit Files(const std::vector<std::string>& names) {
    for (const std::string& name : names) add(name);
  }
  void add(const std::string& name) const {
    fs::create_directories((folder_ / name).parent_path());
    test::write_file(folder_ / name, "");
  }
  fs::path operator/(const std::string& name) const { return folder_ / name; }
  std::string path() const { return folder_.path(); }
  FolderIndex index(FolderIndexOptions options = {}) const {
    options.endings = endings;
    return index_folder(path(), options);
  }
  /// Returns paths below the folder with their labels: "a/1.jpg 0".
  std::vector<std::string> rows(FolderIndexOptions options = {}) const {
    const FolderIndex listed = index(options);
    std::vector<std::string> rows;
    for (size_t i = 0; i < listed.paths.size(); ++i) {
      rows.push_back(listed.paths[i].substr(path().size() + 1));
      if (!listed.labels.empty()) rows.back() += " " + std::to_string(listed.labels[i]);
    }
    return rows;
  }
  std::string error(FolderIndexOptions options = {}) const {
    return test::error_line([&] { index(options); });
  }

 private:
  test::TempFolder folder_;
};

using Rows = std::vector<std::string>;

}  // namespace

TEST_CASE("subfolders are classes, and the files below them rows, in os.walk's order") {
  const Files files({"b/2.jpg", "b/10.JPG", "b/x/1.png", "b/x-y/1.png", "a/1.png", "a/no.txt",
                     ".hidden/1.jpg", "top.jpg"});
  const FolderIndexOptions in_order{.shuffle = false};
  CHECK(files.index(in_order).class_names == Rows{"a", "b"});
  CHECK(files.rows(in_order) ==
        Rows{"a/1.png 0", "b/10.JPG 1", "b/2.jpg 1", "b/x/1.png 1", "b/x-y/1.png 1"});
  CHECK(files.rows({.class_names = {"b", "a"}, .shuffle = false}) ==
        Rows{"b/10.JPG 0", "b/2.jpg 0", "b/x/1.png 0", "b/x-y/1.png 0", "a/1.png 1"});
  CHECK(files.rows({.class_names = {"a"}, .shuffle = false}) == Rows{"a/1.png 0"});
  CHECK(files.rows({.classes = false, .shuffle = false}) == Rows{"top.jpg", ".hidden/1.jpg",
                                                                 "a/1.png", "b/10.JPG", "b/2.jpg",
                                                                 "b/x/1.png", "b/x-y/1.png"});
  const FolderIndex labelled =
      files.index({.classes = false, .labels = {5, 5, 9, 5, 5, 5, 5}, .shuffle = false});
  CHECK(labelled.labels[2] == 9);
  CHECK(labelled.class_names == Rows{"5", "9"});
  CHECK_THAT(files.error({.classes = false, .labels = {1}}), Contains("labels for 7 files"));
  CHECK_THAT(files.error({.class_names = {"aa"}}),
             Contains("class_names are sub-folders. Received: \"aa\""));
}

TEST_CASE("the two subsets of a split hold each file once") {
  Rows names;
  for (int i = 0; i < 23; ++i) names.push_back(str(i % 2 == 0 ? "a/" : "b/", i, ".png"));
  const Files files(names);
  Rows all = files.rows({.seed = 7, .validation_split = 0.3, .subset = "training"});
  CHECK(all.size() == 17);
  const Rows held = files.rows({.seed = 7, .validation_split = 0.3, .subset = "validation"});
  CHECK(held.size() == 6);
  all.insert(all.end(), held.begin(), held.end());
  CHECK(all == files.rows({.seed = 7}));
  CHECK(all != files.rows({.seed = 8}));
  std::sort(all.begin(), all.end());
  Rows sorted = files.rows({.shuffle = false});
  std::sort(sorted.begin(), sorted.end());
  CHECK(all == sorted);
  CHECK_THAT(files.error({.validation_split = 0.3}), Contains("subset is \"training\" or"));
  CHECK_THAT(files.error({.subset = "training"}), Contains("give both, or neither"));
  CHECK_THAT(files.error({.validation_split = 1.5, .subset = "training"}),
             Contains("a validation_split between 0 and 1. Received: 1.5."));
}

TEST_CASE("links out of the folder are refused, others are followed") {
  const test::TempFolder elsewhere;
  test::write_file(elsewhere / "secret.jpg", "");
  const Files files({"a/1.jpg", "b/1.jpg"});
  fs::create_symlink(files / "a/1.jpg", files / "b/2.jpg");
  CHECK(files.rows({.shuffle = false}).size() == 3);
  fs::create_symlink(elsewhere.path(), files / "b/folder");
  CHECK(files.rows({.shuffle = false}).size() == 3);
  CHECK(files.rows({.shuffle = false, .follow_links = true}).back() == "b/folder/secret.jpg 1");
  fs::create_symlink(elsewhere / "secret.jpg", files / "b/3.jpg");
  CHECK_THAT(files.error(), Contains("b/3.jpg] files of the folder ") &&
                                Contains("Received: a link to \"" + elsewhere.path().string()));
  CHECK(files.rows({.follow_links = true}).size() == 5);
  fs::remove(files / "b/3.jpg");
  fs::create_symlink("nothing", files / "b/3.jpg");
  CHECK_THAT(files.error(), Contains("a link to nothing"));
  fs::remove(files / "b/3.jpg");
  fs::create_directory_symlink(elsewhere.path(), files / "c");
  CHECK_THAT(files.error(), Contains("/c] files of the folder "));
  fs::remove(files / "c");
  fs::create_directory_symlink(files / "a", files / "a/round");
  CHECK(files.rows({.shuffle = false}).size() == 3);
  CHECK_THAT(files.error({.follow_links = true}),
             Contains("a/round] a link that leads to other folders. Received: one that leads "
                      "back."));
}

TEST_CASE("folders without data and unreadable ones are named") {
  const Files files({"a/1.txt"});
  CHECK_THAT(files.error(), Contains(files.path() + "] files named *.jpg, *.png in a sub-folder"));
  CHECK_THAT(test::error_line([] { index_folder("/nonexistent", {.endings = endings}); }),
             Contains("/nonexistent] a folder. Received: No such file or directory."));
  files.add("a/1.png");
  CHECK_THAT(test::error_line([&] { index_folder(files / "a/1.png", {.endings = endings}); }),
             Contains("Not a directory"));
  if (::geteuid() == 0) return;  // root may read everything
  fs::permissions(files / "a", fs::perms::none);
  CHECK_THAT(files.error(), Contains("/a] a folder that can be read. Received: Permission"));
  fs::permissions(files / "a", fs::perms::owner_all);
}

TEST_CASE("a hundred thousand files can be listed") {
  const Files files({"a/x.jpg"});
  for (int i = 0; i < 100'000; ++i) {
    REQUIRE(::symlink("x.jpg", (files / str("a/", i, ".jpg")).c_str()) == 0);
  }
  const FolderIndex index = files.index();
  CHECK(index.paths.size() == 100'001);
  CHECK(index.labels.size() == 100'001);
}

}  // namespace folder_index_test
