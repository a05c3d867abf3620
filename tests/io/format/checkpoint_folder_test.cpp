#include <tessera/framework/io/format/checkpoint_folder.hpp>

#include <atomic>
#include <chrono>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/checkpoint_path.hpp>
#include <tessera/framework/io/format/checkpoint_reader.hpp>
#include <tessera/framework/io/format/checkpoint_writer.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/owners.hpp"

namespace checkpoint_folder_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

void save(const fs::path& folder, int64_t step) { write_checkpoint(folder, {}, {}, step); }

int64_t state(const fs::path& folder) { return CheckpointReader(folder).state().get<int64_t>(); }

std::vector<int64_t> steps_in(const fs::path& root) {
  std::vector<int64_t> steps;
  for (const CheckpointEntry& entry : list_checkpoints(root)) {
    CHECK(entry.folder == (root / checkpoint_name(entry.step)).string());
    steps.push_back(entry.step);
  }
  return steps;
}

}  // namespace

TEST_CASE("only checkpoints are listed, by step") {
  const test::TempFolder root;
  CHECK(list_checkpoints((root / "none").string()).empty());
  for (const int64_t step : {12, 3, 1234567, 0}) save(root / checkpoint_name(step), step);
  save(root / "latest", 5);
  for (const std::string name : {"step-000777", "step-7", "tmp.step-000008.12.0", "step-000009x",
                                 "step--00001", "step-99999999999999999999"}) {
    fs::create_directory(root / name);
    if (name != "step-000777") test::write_file(root / name / "index.json", "{}");
  }
  test::write_file(root / "step-000778", "");
  CHECK(steps_in(root.path()) == std::vector<int64_t>{0, 3, 12, 1234567});
  CHECK(checkpoint_name(123) == "step-000123");
  CHECK_THROWS_AS(checkpoint_name(-1), ConfigError);
  CHECK_THROWS_WITH(list_checkpoints((root / "step-000778").string()), Contains("step-000778"));
}

TEST_CASE("a checkpoint replaces the one of the same name, also through a link") {
  const test::TempFolder root;
  save(root / "a", 1);
  fs::create_directory_symlink(root / "a", root / "link");
  save(root / "link/", 2);
  CHECK(state(root / "a") == 2);
  CHECK(fs::is_symlink(root / "link"));
  fs::create_directory(root / "empty");
  save(root / "empty", 3);
  CHECK(state(root / "empty") == 3);
}

TEST_CASE("a folder that is no checkpoint is neither replaced nor removed") {
  const test::TempFolder root;
  save(root / "c", 1);
  test::write_file(root / "c/notes.txt", "mine");
  CHECK_THROWS_WITH(save(root / "c", 2), Contains("notes.txt") && Contains("move it"));
  CHECK_THROWS_WITH(remove_checkpoint(root / "c"), Contains("notes.txt"));
  CHECK(state(root / "c") == 1);
  test::write_file(root / "file", "mine");
  CHECK_THROWS_AS(save(root / "file", 2), FileError);
  CHECK_THROWS_AS(remove_checkpoint(root / "file"), FileError);
  CHECK_THROWS_AS(save(root / "file/c", 2), FileError);
  CHECK(test::read_file(root / "file") == "mine");
}

TEST_CASE("removing a checkpoint removes its folder") {
  const test::TempFolder root;
  save(root / "c", 1);
  CHECK(is_checkpoint(root / "c"));
  remove_checkpoint(root / "c");
  CHECK_FALSE(is_checkpoint(root / "c"));
  remove_checkpoint(root / "c");
  CHECK(fs::is_empty(root.path()));
}

TEST_CASE("only leftovers are removed") {
  const test::TempFolder root;
  save(root / "c", 1);
  const std::string dead = root / ("tmp.c." + test::ended_number());
  fs::copy(root / "c", dead);
  const std::string mixed = root / ("tmp.c." + test::ended_number(1));
  fs::create_directory(mixed);
  test::write_file(mixed + "/notes.txt", "mine");
  test::write_file(mixed + "/shard-00000.safetensors", "beside mine");
  const std::vector<std::string> others = {
      "tmp",  "tmp.c", "tmp.c.1", "tmp.c.x.1", "tmp.c.1.x", "tmp.." + test::ended_number(1) + "x",
      "c.1.2"};
  for (const std::string& name : others) fs::copy(root / "c", root / name);
  fs::create_directory_symlink(root / "c", root / ("tmp.c." + test::ended_number(2)));
  const StagingDirectory alive(split_checkpoint_path(root / "c"));
  CHECK(remove_leftovers(root.path()) == 1);
  CHECK_FALSE(fs::exists(dead));
  CHECK(fs::exists(alive.path()));
  CHECK(fs::exists(mixed + "/notes.txt"));
  CHECK(fs::exists(mixed + "/shard-00000.safetensors"));
  for (const std::string& name : others) CHECK(is_checkpoint(root / name));
  CHECK(state(root / "c") == 1);
  CHECK(remove_leftovers((root / "none").string()) == 0);
}

TEST_CASE("leftovers of other machines and of earlier versions are removed after a day") {
  const test::TempFolder root;
  save(root / "c", 1);
  for (const std::string& name : {"tmp.c." + test::elsewhere_number(), std::string("tmp.c.12.0")}) {
    const std::string folder = root / name;
    fs::copy(root / "c", folder);
    CHECK(remove_leftovers(root.path()) == 0);
    CHECK(is_checkpoint(folder));
    const auto old = fs::file_time_type::clock::now() - std::chrono::hours(25);
    for (const auto& entry : fs::directory_iterator(folder)) fs::last_write_time(entry, old);
    CHECK(remove_leftovers(root.path()) == 0);
    fs::last_write_time(folder, old);
    {
      const FileDescriptor lock = try_lock_folder(folder);
      CHECK(remove_leftovers(root.path()) == 0);
    }
    CHECK(remove_leftovers(root.path()) == 1);
    CHECK_FALSE(fs::exists(folder));
  }
  const std::string known = root / ("tmp.c." + test::elsewhere_number(1));
  fs::copy(root / "c", known);
  CHECK(remove_leftovers(root.path(), {*owner_of(test::elsewhere_number())}) == 1);
  CHECK_FALSE(fs::exists(known));
}

TEST_CASE("a previous checkpoint is kept aside while another may still replace it") {
  const test::TempFolder root;
  save(root / "c", 1);
  fs::rename(root / "c", root / "tmp.c.former");
  const std::string elsewhere = root / ("tmp.c." + test::elsewhere_number());
  fs::create_directory(elsewhere);
  CHECK(remove_leftovers(root.path()) == 0);
  CHECK(fs::exists(root / "tmp.c.former"));
  fs::remove(elsewhere);
  {
    const StagingDirectory alive(split_checkpoint_path(root / "c"));
    CHECK(remove_leftovers(root.path()) == 0);
  }
  CHECK(remove_leftovers(root.path()) == 1);
  CHECK(state(root / "c") == 1);
  fs::copy(root / "c", root / "tmp.c.former");
  CHECK(remove_leftovers(root.path()) == 1);
  CHECK_FALSE(fs::exists(root / "tmp.c.former"));
}

TEST_CASE("a replacement interrupted between its two renames loses nothing") {
  const test::TempFolder root;
  const fs::path folder = root / checkpoint_name(7);
  const fs::path previous = root / "tmp.step-000007.former";
  save(folder, 7);
  fs::rename(folder, previous);
  CHECK(is_checkpoint(folder));
  CHECK(state(folder) == 7);
  CHECK(steps_in(root.path()) == std::vector<int64_t>{7});
  SECTION("the previous one is restored") {
    CHECK(remove_leftovers(root.path()) == 1);
    CHECK(fs::exists(folder));
  }
  SECTION("the next save finishes it") {
    save(folder, 8);
    CHECK(state(folder) == 8);
  }
  SECTION("it is removed") {
    remove_checkpoint(folder);
    CHECK(steps_in(root.path()).empty());
  }
  CHECK_FALSE(fs::exists(previous));
}

TEST_CASE("concurrent saves to a new path replace each other without errors") {
  const test::TempFolder root;
  std::atomic<int> arrived{0};
  std::atomic<int> failures{0};
  const auto saver = [&](int64_t state) {
    for (int step = 0; step < 300; ++step) {
      ++arrived;
      while (arrived < 2 * step + 2) std::this_thread::yield();
      try {
        save(root / checkpoint_name(step), state);
      } catch (const FileError&) {
        ++failures;
      }
    }
  };
  std::thread other(saver, 1);
  saver(2);
  other.join();
  CHECK(failures == 0);
  CHECK(steps_in(root.path()).size() == 300);
}

}  // namespace checkpoint_folder_test
