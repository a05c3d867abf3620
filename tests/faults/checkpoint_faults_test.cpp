#include <cerrno>
#include <cstring>
#include <functional>

#include "tests/faults/checkpoint_sample.hpp"
#include "tests/faults/io_faults.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace checkpoint_faults_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

namespace fs = std::filesystem;

std::vector<IoCall> calls_of(const Scene& scene, const TempFolder& root) {
  scene.set(root);
  start_io_faults({.no_exchange = scene.no_exchange});
  save_step(scene.folder(root), 2);
  std::vector<IoCall> calls = stop_io_faults();
  REQUIRE(load_step(scene.folder(root)) == 2);
  return calls;
}

std::string save_error(const std::string& folder, const IoFaults& faults) {
  start_io_faults(faults);
  try {
    save_step(folder, 2);
  } catch (const FileError& error) {
    stop_io_faults();
    return error.what();
  }
  stop_io_faults();
  return "";
}

}  // namespace

TEST_CASE("a save that crashes before any of its calls leaves the old or the new checkpoint") {
  const TempFolder root;
  for (const Scene& scene : scenes) {
    const std::vector<IoCall> calls = calls_of(scene, root);
    REQUIRE(calls.size() > 20);
    bool seen_new = false;
    for (size_t at = 1; at <= calls.size(); ++at) {
      CAPTURE(scene.replaces, scene.no_exchange, at, calls[at - 1].name, calls[at - 1].path);
      scene.set(root);
      const int code = run_child([&] {
        start_io_faults(
            {.at = static_cast<int>(at), .crash = true, .no_exchange = scene.no_exchange});
        save_step(scene.folder(root), 2);
        return 0;
      });
      REQUIRE(code == crash_exit_code);
      const int64_t step = step_at(scene.folder(root));
      CHECK((step == scene.before() || step == 2));
      CHECK((step == 2 || !seen_new));
      seen_new = step == 2;
      if (!fs::exists(root / "run")) continue;
      remove_leftovers((root / "run").string());
      CHECK(step_at(scene.folder(root)) == step);
      CHECK(entries_in(root / "run").size() == (step < 0 ? 0 : 1));
      save_step(scene.folder(root), 3);
      CHECK(load_step(scene.folder(root)) == 3);
    }
    CHECK(seen_new);
  }
}

TEST_CASE("a save with any failing call reports it and leaves the old checkpoint") {
  const TempFolder root;
  const std::vector<std::string> files = open_files();
  for (const Scene& scene : scenes) {
    const std::vector<IoCall> calls = calls_of(scene, root);
    for (const int error : {ENOSPC, EIO, EDQUOT, EINTR}) {
      for (size_t at = 1; at <= calls.size(); ++at) {
        const IoCall& call = calls[at - 1];
        CAPTURE(scene.replaces, scene.no_exchange, at, call.name, call.path, std::strerror(error));
        scene.set(root);
        const std::string text = save_error(
            scene.folder(root),
            {.at = static_cast<int>(at), .error = error, .no_exchange = scene.no_exchange});
        const bool removes = call.name == "unlink" || call.name == "rmdir";
        if (!text.empty()) {
          CHECK(text.find(std::strerror(error)) != std::string::npos);
          CHECK(text.find((root / "run").string()) == 1);
        } else if (error != EINTR) {
          // Failing to remove leftovers or to open a folder does not fail a save.
          const bool is_file = call.path.find("/shard-") != std::string::npos ||
                               call.path.find("/index.") != std::string::npos;
          const bool looks = call.name == "close" || call.path == scene.folder(root);
          CHECK((removes || (looks && !is_file)));
        }
        CHECK(step_at(scene.folder(root)) == (text.empty() ? 2 : scene.before()));
        CHECK(fs::exists(scene.folder(root)) == (text.empty() || scene.replaces));
        if (!removes && fs::exists(root / "run")) {
          CHECK(entries_in(root / "run").size() == (text.empty() || scene.replaces ? 1 : 0));
        }
        CHECK(open_files() == files);
      }
    }
  }
}

TEST_CASE("signals and short writes do not spoil a save") {
  const TempFolder root;
  const Scene scene;
  const std::vector<IoCall> calls = calls_of(scene, root);
  int writes = 0;
  for (size_t at = 1; at <= calls.size(); ++at) {
    const std::string& name = calls[at - 1].name;
    CAPTURE(at, name);
    scene.set(root);
    if (name == "write") {
      ++writes;
      CHECK(save_error(scene.folder(root), {.at = static_cast<int>(at), .short_write = true})
                .empty());
      CHECK(load_step(scene.folder(root)) == 2);
      scene.set(root);
    }
    if (name == "mkdir") continue;
    CHECK(save_error(scene.folder(root), {.at = static_cast<int>(at), .error = EINTR}).empty());
    CHECK(load_step(scene.folder(root)) == 2);
  }
  CHECK(writes >= 5);
}

TEST_CASE("a save syncs its contents before the rename, and the rename before it returns") {
  const TempFolder root;
  for (const Scene& scene : scenes) {
    CAPTURE(scene.replaces, scene.no_exchange);
    const std::vector<IoCall> calls = calls_of(scene, root);
    const auto find = [&](size_t from, const std::string& name, const std::string& path) {
      while (from < calls.size() && (calls[from].name != name || calls[from].path != path)) ++from;
      return from;
    };
    size_t renamed = calls.size();
    for (size_t i = 0; i < calls.size(); ++i) {
      const bool rename = calls[i].name == "rename" || calls[i].name == "renameat2";
      if (rename && calls[i].path == scene.folder(root)) renamed = i;
    }
    REQUIRE(renamed < calls.size());
    size_t checked = 0;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].name != "write" && calls[i].name != "mkdir") continue;
      if (calls[i].path.find("/tmp.latest.") == std::string::npos) continue;
      CAPTURE(calls[i].path);
      CHECK(find(i, "fsync", calls[i].path) < renamed);
      ++checked;
    }
    CHECK(checked >= 6);
    const size_t named = find(renamed, "fsync", (root / "run").string());
    REQUIRE(named < calls.size());
    for (size_t i = 0; i < named; ++i) CHECK(calls[i].name != "unlink");
  }
}

TEST_CASE("a removal that crashes before any of its calls leaves a complete checkpoint or none") {
  const TempFolder root;
  const Scene scene;
  scene.set(root);
  start_io_faults();
  remove_checkpoint(scene.folder(root));
  const std::vector<IoCall> calls = stop_io_faults();
  REQUIRE(calls.size() > 6);
  for (size_t at = 1; at <= calls.size(); ++at) {
    CAPTURE(at, calls[at - 1].name, calls[at - 1].path);
    scene.set(root);
    const int code = run_child([&] {
      start_io_faults({.at = static_cast<int>(at), .crash = true});
      remove_checkpoint(scene.folder(root));
      return 0;
    });
    REQUIRE(code == crash_exit_code);
    const int64_t step = step_at(scene.folder(root));
    CHECK((step == 1 || step == -1));
    remove_leftovers((root / "run").string());
    CHECK(entries_in(root / "run").size() == (step < 0 ? 0 : 1));
  }
}

}  // namespace checkpoint_faults_test
