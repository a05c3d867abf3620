#include <tessera/datasets/files/imdb_files.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/tar_file.hpp"

namespace imdb_files_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::gzip_bytes;
using test::tar_bytes;
using test::TarEntry;

namespace {

const std::vector<std::string> both{"train", "test"};

/// Returns more bytes than a review may have, which gzip cannot compress.
std::string features() {
  std::string bytes;
  for (uint32_t x = 1; bytes.size() < (3 << 20); x = x * 1664525 + 1013904223) {
    bytes += std::to_string(x >> 8);
  }
  return bytes;
}

/// Returns reviews of 3 + 2 train and 1 + 1 test files, unordered, among files to skip. Each text
/// is the path without the prefix.
std::vector<TarEntry> entries(const std::string& prefix) {
  const std::vector<std::string> reviews{
      "train/pos/2_9.txt", "test/neg/0_1.txt", "train/neg/10_2.txt", "train/pos/0_10.txt",
      "train/neg/9_1.txt", "test/pos/0_8.txt", "train/neg/1_3.txt"};
  std::vector<TarEntry> made{{.name = prefix + "train/", .kind = '5'},
                             {.name = prefix + "README", .bytes = "read me"},
                             {.name = prefix + "imdb.vocab", .bytes = "the\nand"},
                             {.name = prefix + "train/unsup/0_0.txt", .bytes = "unlabelled"},
                             {.name = prefix + "train/urls_pos.txt", .bytes = "http://"},
                             {.name = prefix + "train/pos/more/1_9.txt", .bytes = "deeper"},
                             {.name = prefix + "train/pos/notes.md", .bytes = "not a text"},
                             {.name = prefix + "train/labeledBow.feat", .bytes = features()}};
  for (const std::string& name : reviews) made.push_back({.name = prefix + name, .bytes = name});
  return made;
}

void write_folder(const std::filesystem::path& folder, const std::vector<TarEntry>& files) {
  for (const TarEntry& file : files) {
    if (file.kind != '0') continue;
    std::filesystem::create_directories((folder / file.name).parent_path());
    test::write_file(folder / file.name, file.bytes);
  }
}

std::vector<std::string> texts(const LabelledTexts& reviews) {
  std::vector<std::string> all;
  for (int64_t row = 0; row < reviews.size(); ++row) all.emplace_back(reviews.text(row));
  return all;
}

/// Checks the reviews of entries(): files sorted by their bytes ("1_3" < "10_2" < "9_1"); row i is
/// file (7919 i) mod n. 7919 is 4 mod 5 and 1 mod 2.
void check_reviews(const std::vector<LabelledTexts>& read) {
  REQUIRE(read.size() == 2);
  CHECK(texts(read[0]) == std::vector<std::string>{"train/neg/10_2.txt", "train/pos/2_9.txt",
                                                   "train/pos/0_10.txt", "train/neg/9_1.txt",
                                                   "train/neg/1_3.txt"});
  CHECK(read[0].labels == std::vector<uint8_t>{0, 1, 1, 0, 0});
  CHECK(texts(read[1]) == std::vector<std::string>{"test/neg/0_1.txt", "test/pos/0_8.txt"});
  CHECK(read[1].labels == std::vector<uint8_t>{0, 1});
}

std::string error_of(const std::string& path) {
  try {
    read_reviews(path, both);
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("reviews are read from archives and folders in the same order") {
  for (const std::string prefix : {"aclImdb/", "", "./aclImdb/"}) {
    const test::TempFolder folder;
    const std::vector<TarEntry> files = entries(prefix);
    test::write_file(folder / "plain.tar", tar_bytes(files));
    // The archive's entries in reverse order.
    test::write_file(folder / "packed", gzip_bytes(tar_bytes({files.rbegin(), files.rend()})));
    check_reviews(read_reviews(folder / "plain.tar", both));
    check_reviews(read_reviews(folder / "packed", both));
    write_folder(folder / "unpacked", files);
    check_reviews(read_reviews(find_reviews(folder / "unpacked"), both));
  }
}

TEST_CASE("a row's file is a permutation that mixes the classes") {
  CHECK(review_of_row(1, 25000) == 7919);
  CHECK(review_of_row(4, 25000) == 4 * 7919 - 25000);
  CHECK(review_of_row(24999, 25000) == 25000 - 7919);
  for (const int64_t n : {1, 2, 5, 7918, 7919, 7920, 2 * 7919, 7927, 25000}) {
    CAPTURE(n);
    std::set<int64_t> files;
    for (int64_t row = 0; row < n; ++row) files.insert(review_of_row(row, n));
    CHECK(files.size() == static_cast<size_t>(n));
    CHECK(*files.begin() == 0);
    CHECK(*files.rbegin() == n - 1);
  }
  CHECK(review_of_row(1, 2 * 7919) == 7927);
}

TEST_CASE("only the requested splits are read") {
  const test::TempFolder folder;
  test::write_file(folder / "a.tar", tar_bytes(entries("aclImdb/")));
  const std::vector<std::string> test_only{"test"};
  const auto read = read_reviews(folder / "a.tar", test_only);
  REQUIRE(read.size() == 1);
  CHECK(read[0].size() == 2);
}

TEST_CASE("a folder is searched for reviews, extracted before archived") {
  const test::TempFolder folder;
  const std::string data_folder = folder.path().string();
  CHECK(find_reviews(data_folder).empty());
  CHECK(find_reviews(data_folder + "/none").empty());
  const std::vector<TarEntry> files = entries("");
  std::filesystem::create_directory(folder / "imdb");
  for (const std::string found : {"/imdb/aclImdb_v1.tar.gz", "/aclImdb_v1.tar.gz"}) {
    test::write_file(data_folder + found, "");
    CHECK(find_reviews(data_folder) == data_folder + found);
  }
  CHECK(find_reviews(data_folder + "/imdb/aclImdb_v1.tar.gz") ==
        data_folder + "/imdb/aclImdb_v1.tar.gz");
  for (const std::string found : {"/imdb/aclImdb", "/imdb", "/aclImdb", ""}) {
    write_folder(data_folder + found, files);
    CHECK(find_reviews(data_folder) == data_folder + found);
  }
}

TEST_CASE("reviews keep their bytes, and few of them take little memory") {
  LabelledTexts texts;
  texts.add("na\xc3\xafve\0<br />", 1);
  texts.add("", 0);
  texts.add(std::string(100000, 'x'), 1);
  CHECK(texts.size() == 3);
  CHECK(texts.text(0) == "na\xc3\xafve");
  CHECK(texts.text(1).empty());
  CHECK(texts.text(2).size() == 100000);
  texts.keep(5);
  CHECK(texts.size() == 3);
  texts.keep(2);
  CHECK(texts.size() == 2);
  CHECK(texts.labels == std::vector<uint8_t>{1, 0});
  CHECK(texts.bytes.capacity() < 100);
  texts.keep(0);
  CHECK(texts.bytes.empty());
}

TEST_CASE("files that are no reviews are refused with file and reason") {
  const test::TempFolder folder;
  const std::string path = folder / "a.tar";
  const auto without = [&](const std::string& part) {
    std::vector<TarEntry> files = entries("aclImdb/");
    std::erase_if(files,
                  [&](const TarEntry& file) { return file.name.find(part) != std::string::npos; });
    return files;
  };
  for (const std::string part : {"train/neg", "train/pos", "test/neg", "test/pos"}) {
    test::write_file(path, tar_bytes(without(part + "/")));
    CHECK_THAT(error_of(path), Contains("[" + path + "]") && Contains("none in " + part + "."));
    const test::TempFolder unpacked;
    write_folder(unpacked.path(), without(part + "/"));
    CHECK_THAT(error_of(unpacked / "aclImdb"), Contains("none in " + part));
  }
  std::vector<TarEntry> files = entries("aclImdb/");
  files.push_back({.name = "train/pos/2_9.txt", .bytes = "x"});
  test::write_file(path, tar_bytes(files));
  CHECK_THAT(error_of(path), Contains("train/pos/2_9.txt twice"));
  files.back() = {.name = "aclImdb/train/pos/3_9.txt", .bytes = std::string((1 << 20) + 1, 'x')};
  test::write_file(path, tar_bytes(files));
  CHECK_THAT(error_of(path), Contains("train/pos/3_9.txt") && Contains("at most 1048576 bytes"));
  write_folder(folder / "long", files);
  CHECK_THAT(error_of(folder / "long/aclImdb"),
             Contains("pos/3_9.txt]") && Contains("at most 1048576 bytes"));
  files.back() = {.name = "../evil.txt", .bytes = "x"};
  test::write_file(path, tar_bytes(files));
  CHECK_THAT(error_of(path), Contains("../evil.txt"));
}

}  // namespace imdb_files_test
