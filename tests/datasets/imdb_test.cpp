#include <tessera/datasets/imdb.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/tar_file.hpp"

namespace imdb_test {

using namespace tessera;
using namespace tessera::detail;
using namespace std::string_literals;
using Catch::Matchers::Contains;
using test::difference;
using test::EnvironmentScope;
using test::NoData;
using test::TarEntry;

namespace {

/// Returns 2 n reviews of each split, half of them positive.
std::vector<TarEntry> reviews(int n) {
  std::vector<TarEntry> files;
  for (const std::string split : {"train", "test"}) {
    for (const std::string label : {"neg", "pos"}) {
      for (int i = 0; i < n; ++i) {
        files.push_back({.name = str("aclImdb/", split, "/", label, "/", i, "_7.txt"),
                         .bytes = str(split, " ", label, " ", i)});
      }
    }
  }
  return files;
}

void write_archive(const std::filesystem::path& folder, int n) {
  std::filesystem::create_directories(folder);
  test::write_file(folder / "aclImdb_v1.tar.gz", test::gzip_bytes(test::tar_bytes(reviews(n))));
}

void write_unpacked(const std::filesystem::path& folder, int n) {
  for (const TarEntry& file : reviews(n)) {
    std::filesystem::create_directories((folder / file.name).parent_path());
    test::write_file(folder / file.name, file.bytes);
  }
}

/// Returns the path of the real archive, or "" if this machine does not have it.
std::string true_archive() {
  const char* variable = std::getenv("TESSERA_DATA");
  for (const std::string& candidate :
       {std::string(variable == nullptr ? "" : variable), TESSERA_TEST_DIR "/../../shared/data"s}) {
    const std::string path = candidate.empty() ? "" : find_reviews(candidate);
    if (!path.empty()) return path;
  }
  return "";
}

}  // namespace

TEST_CASE("reviews of an archive or folder come shuffled, with their labels") {
  const test::TempFolder folder;
  write_archive(folder / "packed/imdb", 3);
  write_unpacked(folder / "unpacked", 3);
  for (const std::string name :
       {"packed", "packed/imdb", "packed/imdb/aclImdb_v1.tar.gz", "unpacked", "unpacked/aclImdb"}) {
    CAPTURE(name);
    const auto train = datasets::imdb({.path = folder / name});
    REQUIRE(train->size() == 6);
    // 7919 is 5 modulo 6.
    CHECK(train->text(0) == "train neg 0");
    CHECK(train->text(1) == "train pos 2");
    CHECK(train->text(5) == "train neg 1");
    CHECK(difference(train->labels(), at::tensor({0, 1, 1, 1, 0, 0}, at::kLong)) == "");
    CHECK(train->name() == "imdb");
    CHECK_FALSE(train->synthetic());
    CHECK(datasets::imdb({.split = "test", .path = folder / name})->text(1) == "test pos 2");
  }
  const std::string path = folder / "packed/imdb/aclImdb_v1.tar.gz";
  CHECK(datasets::imdb({.path = folder / "packed"})->announcement() ==
        "imdb: 6 train reviews from " + path);
  CHECK_THROWS_WITH(datasets::imdb({.path = path})->text(6),
                    Contains("[imdb] a row is in [0, 6). Received: 6"));
  CHECK_THROWS_AS(datasets::imdb({.path = path})->text(-1), ShapeError);
}

TEST_CASE("limiting the number of reviews keeps the first ones") {
  const test::TempFolder folder;
  write_archive(folder.path(), 4);
  const std::string path = folder.path();
  const auto all = datasets::imdb({.path = path});
  const auto few = datasets::imdb({.path = path, .size = 3});
  REQUIRE(few->size() == 3);
  for (int64_t row = 0; row < 3; ++row) CHECK(few->text(row) == all->text(row));
  CHECK(difference(few->labels(), all->labels().narrow(0, 0, 3)) == "");
  const ImdbSplits splits = datasets::imdb_splits({.path = path, .size = 5}, 2);
  CHECK(splits.train->size() == 5);
  CHECK(splits.test->size() == 2);
  CHECK(splits.train->text(4) == all->text(4));
  CHECK(splits.test->text(1) == datasets::imdb({.split = "test", .path = path})->text(1));
  CHECK(datasets::imdb_splits({.path = path}).test->size() == 8);
}

TEST_CASE("reviews can be read as texts for a text layer") {
  const test::TempFolder folder;
  write_archive(folder.path(), 1);
  const TextDataHandle texts = datasets::imdb({.path = folder.path()});
  CHECK(texts->size() == 2);
  CHECK(texts->labels().size(0) == 2);
}

TEST_CASE("reviews are searched in $TESSERA_DATA, then in the cache folder") {
  NoData none;
  const test::TempFolder root;
  write_archive(root / "cache/tessera/imdb", 1);
  const EnvironmentScope cache("XDG_CACHE_HOME", (root / "cache").c_str());
  CHECK(datasets::imdb()->size() == 2);
  const EnvironmentScope data("TESSERA_DATA", (root / "data").c_str());
  CHECK(datasets::imdb()->size() == 2);
  write_archive(root / "data/imdb", 2);
  CHECK(datasets::imdb()->size() == 4);
  write_unpacked(root / "data", 3);
  CHECK(datasets::imdb()->size() == 6);
  write_archive(root / "own", 4);
  CHECK(datasets::imdb({.path = root / "own"})->size() == 8);
}

TEST_CASE("without files the reviews are synthetic and announced as such") {
  NoData none;
  const EnvironmentScope data("TESSERA_DATA", none.folder.path().c_str());
  const auto train = datasets::imdb({.size = 50});
  CHECK(train->synthetic());
  CHECK(train->name() == "imdb (synthetic)");
  CHECK(train->size() == 50);
  CHECK(train->announcement() ==
        "imdb (synthetic): 50 procedural train reviews, as no files were found in " +
            none.folder.path().string() + ", " + (none.folder / "none/tessera/imdb").string() +
            "; name the folder of the IMDB files with --data-dir or $TESSERA_DATA");
  CHECK_THROWS_AS(datasets::imdb({.size = 50, .synthetic = false}), FileError);
  CHECK(datasets::imdb({.size = 20})->text(19) == train->text(19));
  const ImdbSplits splits = datasets::imdb_splits({.size = 10}, 10);
  CHECK(splits.test->synthetic());
  CHECK(splits.train->text(0) == train->text(0));
  CHECK(splits.test->text(0) != train->text(0));
  CHECK_THROWS_WITH(datasets::imdb({.split = "test", .size = 25001}),
                    Contains("[imdb test] size is at most 25000") && Contains("25001"));
}

TEST_CASE("a path without reviews is an error, never synthetic") {
  const test::TempFolder empty;
  const std::string path = empty.path();
  CHECK_THROWS_AS(datasets::imdb({.path = path}), FileError);
  CHECK_THROWS_WITH(datasets::imdb({.path = path}),
                    Contains("[" + path + "]") && Contains("aclImdb_v1.tar.gz or the folder") &&
                        Contains("neither there"));
  CHECK_THROWS_WITH(datasets::imdb({.path = path + "/none"}), Contains("no such folder or file"));
  test::write_file(empty / "aclImdb_v1.tar.gz", "not an archive");
  CHECK_THROWS_WITH(datasets::imdb({.path = path}), Contains("aclImdb_v1.tar.gz]"));
  NoData none;
  const EnvironmentScope data("TESSERA_DATA", path.c_str());
  CHECK_THROWS_AS(datasets::imdb(), FileError);
}

TEST_CASE("wrong options of imdb are refused in one line") {
  const test::TempFolder folder;
  write_archive(folder.path(), 2);
  const std::string path = folder.path();
  CHECK_THROWS_WITH(datasets::imdb({.path = path, .size = 5}),
                    Contains("[imdb train] size is at most 4") && Contains("Received: 5"));
  CHECK_THROWS_WITH(datasets::imdb_splits({.path = path}, 5), Contains("[imdb test] size is"));
  CHECK_THROWS_AS(datasets::imdb({.path = path, .size = 0}), ConfigError);
  CHECK_THROWS_AS(datasets::imdb({.path = path, .size = -3}), ConfigError);
  CHECK_THROWS_WITH(datasets::imdb({.split = "dev", .path = path}),
                    Contains(R"(split is "train" or "test". Received: "dev")"));
}

TEST_CASE("the real IMDB is read correctly") {
  const std::string path = true_archive();
  if (path.empty()) return test::skip("there is no IMDB in $TESSERA_DATA or ../shared/data");
  const ImdbSplits splits = datasets::imdb_splits({.path = path});
  for (const auto& split : {splits.train, splits.test}) {
    CHECK(split->size() == 25000);
    CHECK(split->labels().sum().item<int64_t>() == 12500);
  }
  // train/neg/0_3.txt and train/neg/5879_1.txt.
  CHECK(splits.train->text(0).starts_with("Story of a man who has unnatural feelings for a pig."));
  CHECK(splits.train->text(1).starts_with("I wonder how the actors acted in this movie."));
}

}  // namespace imdb_test
