#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <thread>

#include <tessera/tessera.hpp>

#include "tests/apps/small_llama.hpp"
#include "tests/processes/ranks.hpp"
#include "tests/support/catch.hpp"

namespace keras_files_test {

using namespace tessera::test;

namespace {

/// The output of keras_program.
struct Taken {
  int64_t shard = 0, growth = 0, read = 0, collectives = -1;
};

std::vector<Taken> run_program(const std::vector<std::string>& arguments) {
  Processes processes(4, app_path("keras_program"), arguments);
  std::vector<Taken> list;
  for (const RankEnd& end : processes.wait(std::chrono::minutes(10))) {
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 0);
    Taken& taken = list.emplace_back();
    std::istringstream words(end.out);
    std::string word;
    words >> word >> taken.shard >> word >> taken.growth >> word >> taken.read >> word >>
        taken.collectives;
  }
  return list;
}

/// Saves and loads an archive and a weights file. Each process may take the memory of its shard and
/// `room` bytes more.
void check_files(const std::string& units, const std::string& layers, int64_t room) {
  const TempFolder folder;
  for (const char* name : {"x.weights.h5", "x.keras"}) {
    const std::string path = folder / name;
    for (const char* verb : {"save=", "load="}) {
      for (const Taken& taken : run_program({verb + path, "units=" + units, "layers=" + layers})) {
        CAPTURE(name, verb, taken.shard, taken.growth, taken.read);
        CHECK(taken.growth <= taken.shard + room);
        CHECK(taken.collectives == 0);
        if (verb == std::string("save=")) continue;
        // One pass for the checksum, shared by the processes, and one for the shards.
        CHECK(taken.read >= 2 * taken.shard);
        CHECK(taken.read <= 2 * taken.shard + taken.shard / 50);
      }
    }
    std::filesystem::remove(path);
  }
}

}  // namespace

TEST_CASE("four processes hold only their shards of a model of 64 MB in Keras' files") {
  check_files("2048", "4", 32 << 20);
}

TEST_CASE("four processes hold only their shards of a model of 1.6 GB", "[nightly]") {
  check_files("4096", "25", 64 << 20);
}

TEST_CASE("four processes read and hold only their shards of a folder of Hugging Face's programs") {
  const TempFolder folder;
  write_small_llama(folder.path().string(),
                    {.features = 512, .hidden = 1024, .heads = 8, .key_heads = 4, .head_dim = 64});
  for (const Taken& taken : run_program({"pretrained=" + folder.path().string()})) {
    CAPTURE(taken.shard, taken.growth, taken.read);
    CHECK(taken.shard > 4 << 20);
    CHECK(taken.growth <= taken.shard + (32 << 20));
    CHECK(taken.read >= taken.shard);
    CHECK(taken.read <= taken.shard + taken.shard / 100);
  }
}

TEST_CASE("a process killed while it saves leaves the previous model or the new one") {
  namespace fs = std::filesystem;
  for (const char* name : {"x.keras", "x"}) {
    const TempFolder folder;
    const std::string path = folder / name;
    const auto entries = [&] {
      return std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator());
    };
    int loadable = 0;
    ptrdiff_t max_entries = 0;
    for (int attempt = 0; attempt < 8; ++attempt) {
      Processes saver(1, app_path("keras_program"),
                      {"save=" + path, "devices=1", "units=512", "times=100000"});
      REQUIRE(saver.writes(0, "saved 2\n", std::chrono::seconds(60)));
      std::this_thread::sleep_for(std::chrono::milliseconds(attempt * 7 + 1));
      saver.signal(0, SIGKILL);
      CHECK(saver.wait(std::chrono::seconds(20))[0].exit_code == 128 + SIGKILL);
      loadable += tessera::load_model(path)->weights().size() == 8;
      max_entries = std::max(max_entries, entries());
    }
    CHECK(loadable == 8);
    // Temporary files of killed saves are removed by the next save.
    CHECK(max_entries > 1);
    const tessera::ModelHandle model = tessera::load_model(path);
    model.save(path, {.zipped = name == std::string("x.keras")});
    CHECK(entries() == 1);
  }
}

}  // namespace keras_files_test
