#include <tessera/datasets/text_folder.hpp>

#include <filesystem>

#include <ATen/ATen.h>

#include <tessera/layers/text/text_vectorization.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"

namespace text_folder_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

void write_texts(const test::TempFolder& folder) {
  for (const std::string name : {"neg/1.txt", "neg/2.txt", "pos/1.txt"}) {
    std::filesystem::create_directories((folder / name).parent_path());
    test::write_file(folder / name, "größe of " + name);
  }
  test::write_file(folder / "pos/notes.md", "not read");
}

}  // namespace

TEST_CASE("texts of a folder are the files of its classes") {
  const test::TempFolder folder;
  write_texts(folder);
  const auto texts = text_dataset_from_directory(folder.path(), {.shuffle = false});
  CHECK(texts->size() == 3);
  CHECK(texts->text(1) == "größe of neg/2.txt");
  CHECK(texts->class_names() == std::vector<std::string>{"neg", "pos"});
  CHECK(difference(texts->labels(), at::tensor({0, 0, 1}, at::kLong)) == "");
  CHECK(texts->file_paths()[2] == folder.path().string() + "/pos/1.txt");
  const auto mixed = text_dataset_from_directory(folder.path(), {.seed = 3});
  for (int64_t row = 0; row < 3; ++row) {
    const auto path = mixed->file_paths()[static_cast<size_t>(row)];
    CHECK(path.ends_with(mixed->text(row).substr(std::string("größe of ").size())));
    CHECK(mixed->labels()[row].item<int64_t>() == (path.find("/pos/") != std::string::npos));
  }
  const auto plain = text_dataset_from_directory(folder.path(), {.labelled = false});
  CHECK(plain->size() == 3);
  CHECK_FALSE(plain->labels().defined());
  TextVectorization vectorize({.max_tokens = 10});
  vectorize.adapt(texts);
  CHECK(vectorize.get_vocabulary().size() == 7);
}

TEST_CASE("subset \"both\" of a text folder equals two calls") {
  const test::TempFolder folder;
  for (int i = 0; i < 10; ++i) {
    const std::string name = str(i % 2 == 0 ? "neg/" : "pos/", i, ".txt");
    std::filesystem::create_directories((folder / name).parent_path());
    test::write_file(folder / name, name);
  }
  TextFolderOptions options{.seed = 5, .validation_split = 0.3};
  const auto [train, validation] = datasets::text_subsets_from_directory(folder.path(), options);
  for (const auto& [texts, subset] : {std::pair(train, "training"), {validation, "validation"}}) {
    options.subset = subset;
    const auto alone = text_dataset_from_directory(folder.path(), options);
    CHECK(texts->file_paths() == alone->file_paths());
    CHECK(difference(texts->labels(), alone->labels()) == "");
  }
  CHECK(train->size() == 7);
  CHECK(validation->size() == 3);
  const auto error = [&](const TextFolderOptions& wrong) {
    return test::error_line([&] { datasets::text_subsets_from_directory(folder.path(), wrong); });
  };
  CHECK_THAT(error({}), Contains("a validation_split for two subsets. Received: 0."));
  CHECK_THAT(error(options), Contains("both subsets. Received: subset \"validation\"."));
}

TEST_CASE("texts are truncated between characters, and errors name the file") {
  const test::TempFolder folder;
  write_texts(folder);
  const std::string path = folder.path();
  const auto text = [&](int64_t length) {
    return std::string(text_dataset_from_directory(path, {.max_length = length})->text(0));
  };
  CHECK(text(2) == "gr");
  CHECK(text(3) == "gr");
  CHECK(text(4) == "grö");
  CHECK(text(1000).starts_with("größe of "));
  CHECK_THAT(test::error_line([&] { text(0); }), Contains("max_length is at least 1"));
  const auto texts = text_dataset_from_directory(path);
  CHECK_THAT(test::error_line([&] { texts->text(3); }), Contains("a row is in [0, 3)"));
  CHECK_THAT(test::error_line([&] { text_dataset_from_directory(path, {.class_names = {"p"}}); }),
             Contains("class_names are sub-folders"));
  CHECK_THAT(test::error_line([&] { text_dataset_from_directory(path + "/pos"); }),
             Contains("/pos] files named *.txt in a sub-folder for each class. Received: none."));
  std::filesystem::create_directories(folder / "pos/2.txt.d");
  std::filesystem::create_symlink("/etc/passwd", folder / "pos/3.txt");
  CHECK_THAT(test::error_line([&] { text_dataset_from_directory(path); }),
             Contains("pos/3.txt] files of the folder"));
}

}  // namespace text_folder_test
