#include <tessera/framework/io/export.hpp>

#include <tessera/tessera.hpp>

#include <sys/inotify.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/io/format/versioned_directory.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/sample_export.hpp"

namespace export_hostile_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

const std::vector<std::string> texts{"good fun", "awful"};

std::vector<fs::path> files_of(const std::string& version) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(version)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// Returns whether loading throws a one-line FileError or gives the same answers. Rethrows any
/// other exception.
bool refused_or_equal(const std::string& version, const at::Tensor& expected) {
  try {
    return at::equal(load_export(version).predict(texts), expected);
  } catch (const FileError& error) {
    const std::string text = error.what();
    return text.find(version) != std::string::npos && text.find('\n') == std::string::npos;
  }
}

bool is_refused(const std::string& version) {
  try {
    load_export(version);
  } catch (const FileError&) {
    return true;
  }
  return false;
}

/// Applies `change` to one file of the sample classifier's export and fixes the checksums, as only
/// an attacker would. Returns the error of loading it.
std::string forged(
    const std::string& file, const std::function<void(Json&)>& change,
    const std::function<void(const std::string&)>& write = [](const std::string& good) {
      test::export_sample(good);
    }) {
  const test::TempFolder folder;
  const std::string good = folder / "good";
  write(good);
  NewVersion version(folder / "bad");
  Json manifest;
  for (const fs::path& path : files_of(good + "/000001")) {
    const std::string name = path.filename();
    std::string bytes = test::read_file(path);
    if (name == file) {
      Json json = parse_json(bytes, name);
      change(json);
      bytes = to_json_text(json);
    }
    if (name != version_manifest) test::write_file(version.file(name), bytes);
    if (name == version_manifest) manifest = parse_json(bytes, name);
  }
  manifest.erase("files");
  manifest.erase("checksum");
  version.commit(manifest);
  try {
    load_export(folder / "bad");
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

/// Counts how often a file is opened.
class OpenWatch {
 public:
  explicit OpenWatch(const std::string& path) : queue_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    REQUIRE(inotify_add_watch(queue_, path.c_str(), IN_OPEN) >= 0);
  }
  ~OpenWatch() { ::close(queue_); }
  OpenWatch(const OpenWatch&) = delete;
  OpenWatch& operator=(const OpenWatch&) = delete;
  int opens() {
    int count = 0;
    inotify_event event{};
    while (::read(queue_, &event, sizeof(event)) > 0) ++count;
    return count;
  }

 private:
  int queue_;
};

void collect_strings(Json& json, std::vector<Json*>& strings) {
  if (json.is_string()) strings.push_back(&json);
  if (!json.is_structured()) return;
  for (Json& child : json) collect_strings(child, strings);
}

}  // namespace

TEST_CASE("every flipped bit of an export is detected") {
  const test::TempFolder folder;
  test::export_sample(folder / "e");
  const std::string version = folder / "e/000001";
  const at::Tensor expected = load_export(version).predict(texts);
  CHECK(files_of(version).size() == 6);
  for (const fs::path& file : files_of(version)) {
    const std::string bytes = test::read_file(file);
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
      test::write_file(file, changed);
      if (refused_or_equal(version, expected)) continue;
      FAIL_CHECK(file << ", byte " << at);
    }
    test::write_file(file, bytes);
  }
  CHECK_FALSE(is_refused(version));
}

TEST_CASE("a truncated, extended or incomplete export is refused") {
  const test::TempFolder folder;
  test::export_sample(folder / "e");
  const std::string version = folder / "e/000001";
  for (const fs::path& file : files_of(version)) {
    CAPTURE(file);
    const std::string bytes = test::read_file(file);
    // The manifest ends with a newline that may be missing.
    const size_t needed = bytes.size() - (file.filename() == version_manifest);
    for (size_t length = 0; length < needed; ++length) {
      test::write_file(file, bytes.substr(0, length));
      if (!is_refused(version)) FAIL_CHECK("length " << length);
    }
    test::write_file(file, bytes + "x");
    CHECK(is_refused(version));
    fs::remove(file);
    CHECK(is_refused(version));
    test::write_file(file, bytes);
  }
  CHECK_FALSE(is_refused(version));
}

TEST_CASE("files of another export are refused by name") {
  const test::TempFolder folder;
  test::export_sample(folder / "e", 1);
  test::export_sample(folder / "e", 5);
  const auto overwrite = fs::copy_options::overwrite_existing;
  fs::copy_file(folder / "e/000001/weights.safetensors", folder / "e/000002/weights.safetensors",
                overwrite);
  CHECK_THROWS_WITH(load_export(folder / "e"), Contains("weights.safetensors"));
  for (const char* name : {"sample.safetensors", "config.json", "export.json"}) {
    CHECK(is_refused(folder / "e/000002"));
    fs::copy_file(folder.path() / "e/000001" / name, folder.path() / "e/000002" / name, overwrite);
  }
  CHECK_FALSE(is_refused(folder / "e/000002"));
}

TEST_CASE("a configuration with an unknown class, a path, or an excessive size is refused") {
  const auto config = [](const std::function<void(Json&)>& change) {
    return forged("config.json", [&](Json& json) { change(json["config"]["layers"]); });
  };
  CHECK(config([](Json&) {}) == "");
  CHECK_THAT(config([](Json& layers) { layers[0]["class_name"] = "Lambda"; }),
             Contains("config.json") && Contains("\"Lambda\""));
  CHECK_THAT(config([](Json& layers) { layers[0]["config"]["activation"] = "/etc/passwd"; }),
             Contains("/etc/passwd"));
  CHECK_THAT(config([](Json& layers) { layers[0]["config"]["name"] = "../../x"; }),
             Contains("../../x"));
  CHECK_THAT(config([](Json& layers) { layers[0]["config"]["units"] = 1000000000; }),
             Contains("hidden/kernel"));
  CHECK_THAT(config([](Json& layers) { layers[0]["config"]["units"] = 2147483647; }),
             Contains("hidden"));
  CHECK_THAT(config([](Json& layers) { layers = Json::array(); }),
             Contains("config.json") || Contains("sample") || Contains("can be loaded"));
}

TEST_CASE("a model whose sample needs too much memory is refused before allocating any") {
  // Averaging more copies of a row gives the same result, so the sample does not reveal the change.
  const auto enlarged = [](const LayerHandle& layer, const std::string& key, const Json& value) {
    return forged(
        "config.json", [&](Json& json) { json["config"]["layers"][0]["config"][key] = value; },
        [&](const std::string& folder) {
          const Sequential model({layer, GlobalMaxPooling1D()});
          model.build({-1, 2, 1});
          export_model(model, folder, {.sample = at::ones({256, 2, 1})});
        });
  };
  CHECK(enlarged(UpSampling1D(2, {.name = "up"}), "size", 3) == "");
  CHECK_THAT(enlarged(UpSampling1D(2, {.name = "up"}), "size", 2000000000),
             Contains("config.json] activations of the sample take at most") &&
                 Contains("Received: (256, 2, 2000000000, 1) of layer up, a total of 3.73 TB") &&
                 Contains("To fix: export a smaller model, or raise max_activation_bytes"));
  CHECK_THAT(enlarged(ZeroPadding1D(1, {.name = "pad"}), "padding", 2000000000),
             Contains("Received: (256, 4000000002, 1) of layer pad, a total of"));
}

TEST_CASE("the memory limit of a call is an option and includes layers' temporaries") {
  const test::TempFolder folder;
  const SymbolicTensor x = Input({8, 8, 8});
  const LayerHandle attention =
      MultiHeadAttention(2, 4, {.attention_axes = {1, 2}, .name = "attention"});
  const Functional model({x}, {GlobalMaxPooling2D()(attention({x, x}))});
  export_model(model, folder / "e", {.sample = at::ones({1, 8, 8, 8})});
  load_export(folder / "e", {.max_activation_bytes = 1 << 20});
  // The scores are 2 x 64 x 64 numbers; the inputs and outputs are less than an eighth of that.
  CHECK_THROWS_WITH(load_export(folder / "e", {.max_activation_bytes = 30000}),
                    Contains("take at most 29.30 KB") && Contains("Received: (1, 2, 8, 8, 8, 8)") &&
                        Contains("of layer attention"));
}

TEST_CASE("no text of a configuration is opened as a file") {
  const test::TempFolder folder;
  const std::string trap = folder / "trap.txt";
  test::write_file(trap, "good\nbad\n");
  OpenWatch watch(trap);
  for (const char* file : {"config.json", "text.json"}) {
    for (size_t n = 0, count = 1; n < count; ++n) {
      forged(file, [&](Json& json) {
        std::vector<Json*> strings;
        collect_strings(json, strings);
        count = strings.size();
        *strings[n] = trap;
      });
    }
  }
  CHECK(watch.opens() == 0);
  test::read_file(trap);
  CHECK(watch.opens() == 1);
}

TEST_CASE("a deeply nested configuration is refused") {
  const std::string error = forged("config.json", [](Json& json) {
    for (int i = 0; i < 1000; ++i) json = Json{{"config", std::move(json)}};
  });
  CHECK_THAT(error, Contains("config.json") && Contains("64 deep"));
}

TEST_CASE("a text layer's configuration must be a text layer's") {
  CHECK_THAT(forged("text.json", [](Json& json) { json["class_name"] = "Dense"; }),
             Contains("text.json"));
  CHECK_THAT(forged("text.json",
                    [](Json& json) {
                      json = {{"class_name", "Flatten"}, {"config", Json::object()}};
                    }),
             Contains("text.json") && Contains("Flatten"));
}

TEST_CASE("every entry of a manifest is checked") {
  const auto manifest = [](const std::string& key, const Json& value) {
    return forged(version_manifest, [&](Json& json) { json[key] = value; });
  };
  CHECK(manifest("step", 9) == "");
  CHECK_THAT(manifest("format_version", 2), Contains("Received: \"tessera export\" 2"));
  CHECK_THAT(manifest("format", "saved_model"), Contains("\"saved_model\""));
  CHECK_THAT(manifest("input", "file"), Contains("kind of input"));
  CHECK_THAT(manifest("input_dtype", "QInt8"), Contains("kind of input"));
  CHECK_THAT(manifest("input_shape", {1000000000, 1000000000}), Contains("e/") || Contains("bad"));
  CHECK_THAT(manifest("input_shape", {-3}), Contains("input_shape"));
  CHECK_THAT(manifest("input_shape", Json::array()), Contains("bad"));
  CHECK_THAT(manifest("activation", "exec"), Contains("activation"));
  CHECK_THAT(manifest("sample_texts", Json::array()), Contains("bad"));
  CHECK_THAT(manifest("sample_texts", {"other"}), Contains("sample.safetensors"));
  CHECK_THAT(manifest("labels", "positive"), Contains("labels"));
  CHECK_THAT(manifest("labels", {"positive"}), Contains("a label for each class"));
  CHECK_THAT(manifest("output_shape", {3}), Contains("shape (-1, 3)"));
  CHECK_THAT(manifest("open", "/etc/passwd"), Contains("\"open\""));
  const Json more = {{"shape", {3}}, {"dtype", "Float"}};
  CHECK(manifest("more_inputs", {more}) != "");
  CHECK_THAT(manifest("more_inputs", {{{"shape", {3}}, {"dtype", "Half"}}}), Contains("Half"));
  CHECK_THAT(manifest("more_inputs", {{{"shape", {3}}}}), Contains("dtype"));
  CHECK(manifest("more_inputs", 3) != "");
  CHECK_THAT(manifest("more_output_shapes", {{3}}), Contains("sample.safetensors"));
  CHECK(manifest("more_output_shapes", "none") != "");
}

TEST_CASE("file names outside the folder are refused") {
  const test::TempFolder folder;
  NewVersion version(folder / "e");
  for (const char* name : {"", ".", "..", "../x", "/etc/x", "a/b", ".hidden", "x.gz", "a b",
                           "export.json", "caf\xc3\xa9", "a\\b"}) {
    CHECK_THROWS_AS(version.file(name), ConfigError);
  }
  CHECK_THROWS_AS(version.file(std::string(101, 'n')), ConfigError);
  CHECK(version.file("vocabulary.txt").find(folder.path()) == 0);
  CHECK_THROWS_AS(version.file("vocabulary.txt"), ConfigError);
}

}  // namespace export_hostile_test
