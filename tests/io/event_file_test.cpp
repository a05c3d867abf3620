#include <tessera/framework/io/internal/event_file.hpp>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>

#include <tessera/framework/base/error.hpp>
#include "tests/support/catch.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/files.hpp"

namespace event_file_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

std::string unhex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

template <class T>
T little_endian(const std::string& bytes, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(static_cast<uint8_t>(bytes.at(at + i))) << (8 * i);
  }
  return value;
}

/// Returns the records of a file; checks lengths and checksums.
std::vector<std::string> records(const std::string& path) {
  const std::string bytes = test::read_file(path);
  const auto masked = [](const std::string& text) {
    const uint32_t crc = crc32c(text);
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
  };
  std::vector<std::string> found;
  for (size_t at = 0; at < bytes.size();) {
    const auto size = little_endian<uint64_t>(bytes, at);
    CHECK(little_endian<uint32_t>(bytes, at + 8) == masked(bytes.substr(at, 8)));
    found.push_back(bytes.substr(at + 12, size));
    CHECK(found.back().size() == size);
    CHECK(little_endian<uint32_t>(bytes, at + 12 + size) == masked(found.back()));
    at += size + 16;
  }
  return found;
}

/// Returns the bytes of a nested message: of the first field `path[0]`, within it of `path[1]`, …
std::string field(const std::string& message, std::vector<uint32_t> path) {
  protozero::pbf_reader reader(message);
  if (!reader.next(path[0])) return "absent";
  const std::string inner = reader.get_string();
  path.erase(path.begin());
  return path.empty() ? inner : field(inner, path);
}

}  // namespace

TEST_CASE("checksums are Castagnoli's", "[event_file]") {
  // The check values of RFC 3720.
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xE3069283u);
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AAu);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62A8AB43u);
}

TEST_CASE("an event file equals TensorFlow's byte for byte", "[event_file]") {
  const auto golden = nlohmann::json::parse(test::read_file(test::golden_path("event_file.json")));
  const test::TempFolder folder;
  size_t event = 0;
  const auto clock = [&] { return golden["wall_times"].at(event++).get<double>(); };
  EventFileWriter writer(folder.path().string(), {.clock = clock});
  for (const auto& [tag, value, step] :
       golden["scalars"].get<std::vector<std::tuple<std::string, nlohmann::json, int64_t>>>()) {
    writer.scalar(tag, value.is_string() ? NAN : value.get<double>(), step);
  }
  for (const auto& [tag, text, step] :
       golden["texts"].get<std::vector<std::tuple<std::string, std::string, int64_t>>>()) {
    writer.text(tag, text, step);
  }
  for (const auto& [tag, values, step, buckets] :
       golden["histograms"]
           .get<std::vector<std::tuple<std::string, std::vector<double>, int64_t, int>>>()) {
    writer.histogram(tag, values, step, buckets);
  }
  writer.flush();
  CHECK(event == golden["wall_times"].size());
  CHECK(test::read_file(writer.path()) == unhex(golden["bytes"]));
}

TEST_CASE("an event file has its version first, then one record per value", "[event_file]") {
  const test::TempFolder folder;
  const std::string logs = (folder / "logs/train").string();
  EventFileWriter writer(logs, {.clock = [] { return 1234567890.75; }});
  writer.scalar("epoch_loss", 0.75, 3);
  CHECK(records(writer.path()).size() == 1);
  writer.flush();
  const std::vector<std::string> events = records(writer.path());
  REQUIRE(events.size() == 2);
  CHECK(field(events[0], {3}) == "brain.Event:2");
  protozero::pbf_reader event(events[1]);
  REQUIRE(event.next(1));
  CHECK(event.get_double() == 1234567890.75);
  REQUIRE(event.next(2));
  CHECK(event.get_int64() == 3);
  CHECK(field(events[1], {5, 1, 1}) == "epoch_loss");
  CHECK(field(events[1], {5, 1, 9, 1, 1}) == "scalars");
  const std::string number = field(events[1], {5, 1, 8, 4});
  REQUIRE(number.size() == 4);
  CHECK(std::bit_cast<float>(little_endian<uint32_t>(number, 0)) == 0.75f);
  const std::string name = std::filesystem::path(writer.path()).filename().string();
  const std::regex pattern(R"(events\.out\.tfevents\.1234567890\..+\.\d+\.\d+\.v2)");
  CHECK(std::regex_match(name, pattern));
}

TEST_CASE("two writers of one folder do not share a file", "[event_file]") {
  const test::TempFolder folder;
  EventFileWriter first(folder.path().string()), second(folder.path().string());
  CHECK(first.path() != second.path());
}

TEST_CASE("a destroyed writer has written everything", "[event_file]") {
  const test::TempFolder folder;
  std::string path;
  {
    EventFileWriter writer(folder.path().string());
    for (int i = 0; i < 30000; ++i) writer.scalar("loss", i, i);
    path = writer.path();
    // More than the writer buffers in memory.
    CHECK(std::filesystem::file_size(path) > 1000000);
  }
  CHECK(records(path).size() == 30001);
}

TEST_CASE("event files refuse values that they cannot hold", "[event_file]") {
  const test::TempFolder folder;
  test::write_file(folder / "file", "");
  CHECK_THROWS_AS(EventFileWriter((folder / "file").string()), FileError);
  CHECK_THROWS_AS(EventFileWriter((folder / "file/logs").string()), FileError);
  EventFileWriter writer(folder.path().string());
  const double values[] = {1, NAN};
  CHECK_THROWS_WITH(writer.histogram("k", values, 0),
                    "[histogram \"k\"] the values must be finite numbers below 1e300. Received: "
                    "nan. To fix: leave out values that are not.");
  CHECK_THROWS_AS(writer.histogram("k", std::span(values).first(1), 0, 0), ConfigError);
}

TEST_CASE("a full disk is an error that names the file", "[event_file]") {
  const test::TempFolder folder;
  EventFileWriter writer(folder.path().string(), {.clock = [] { return 5.0; }});
  const std::string next = std::regex_replace(
      writer.path(), std::regex(R"(\.(\d+)\.v2$)"),
      "." +
          std::to_string(
              std::stoi(std::regex_replace(writer.path(), std::regex(R"(.*\.(\d+)\.v2$)"), "$1")) +
              1) +
          ".v2");
  std::filesystem::create_symlink("/dev/full", next);
  EventFileWriter full(folder.path().string(), {.clock = [] { return 5.0; }});
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_WITH(full.flush(),
                      Catch::Contains("[" + next + "]") && Catch::Contains("No space left"));
  }
}

TEST_CASE("records that did not fit on a full disk are written later", "[event_file]") {
  const test::TempFolder folder;
  EventFileWriter writer(folder.path().string());
  writer.scalar("loss", 1, 0);
  writer.flush();
  const size_t size = test::read_file(writer.path()).size();
  {
    const test::FileSizeLimit limit(size + 1000);
    for (int i = 0; i < 30000; ++i) writer.scalar("loss", i, i);
    CHECK(test::read_file(writer.path()).size() == size);
    CHECK_THROWS_WITH(writer.flush(), Catch::Contains("[" + writer.path() + "]"));
    CHECK(test::read_file(writer.path()).size() == size);
  }
  writer.flush();
  CHECK(records(writer.path()).size() == 30002);
}

// Hidden: tests/scripts/read_event_file.py runs it and reads the file with the real TensorBoard.
TEST_CASE("writes a sample event file", "[.event_file_sample]") {
  const char* folder = std::getenv("TESSERA_EVENT_FOLDER");
  REQUIRE(folder != nullptr);
  EventFileWriter writer(folder);
  for (int step = 0; step < 5; ++step) writer.scalar("epoch_loss", 1.0 / (step + 1), step);
  writer.scalar("epoch_accuracy", 0.5, 0);
  writer.text("note", "**synthetic**", 1);
  const double values[] = {0, 1, 2, 3, 3};
  writer.histogram("kernel", values, 2, 3);
}

}  // namespace event_file_test
