#include <tessera/framework/io/load_model.hpp>

#include <tessera/tessera.hpp>

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <random>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/io/format/zip_archive.hpp>

#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"
#include "tests/support/hdf5_cases.hpp"
#include "tests/support/seed_scope.hpp"
#include "tests/support/zip_file.hpp"

namespace keras_hostile_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using test::ZipEntry;

namespace {

namespace fs = std::filesystem;

ModelHandle small_model(int64_t seed = 0) {
  const test::SeedScope scope(seed);
  const Input x({4});
  const SymbolicTensor y = Dense(3, {.activation = "relu", .name = "first"})(x);
  const ModelHandle model = Functional({x}, {Dense(2, {.name = "second"})(y)});
  model.compile({.optimizer = Adam(), .loss = "mse"});
  return model;
}

/// Returns the members of a saved model, to be changed.
std::vector<ZipEntry> saved_members(const std::string& path) {
  const ZipArchive archive(path);
  std::vector<ZipEntry> entries;
  for (const ZipMember& member : archive.members()) {
    entries.push_back({.name = member.name, .text = archive.read(member, 1 << 20)});
  }
  return entries;
}

/// Loads models from modified archives.
class Hostile {
 public:
  Hostile() {
    const ModelHandle model = small_model();
    model.save(folder_ / "good.keras");
    model.save_weights(folder_ / "good.weights.h5");
    good_ = saved_members(folder_ / "good.keras");
  }
  std::string path(const std::string& name) const { return folder_ / name; }
  ZipEntry entry(const std::string& name) const {
    for (const ZipEntry& one : good_) {
      if (one.name == name) return one;
    }
    throw std::runtime_error(name);
  }

  /// Returns the error of loading an archive with these members; checks that it names the archive.
  std::string error(const std::vector<ZipEntry>& entries) const {
    const std::string file = path("bad.keras");
    test::write_file(file, test::zip_bytes(entries));
    const std::string line = test::error_line([&] { load_model(file); });
    if (line != "no error") CHECK_THAT(line, StartsWith("[" + file));
    CHECK(line.size() < 1200);
    return line;
  }
  /// Returns the error with one member added.
  std::string with(ZipEntry one) const {
    std::vector<ZipEntry> entries = good_;
    entries.push_back(std::move(one));
    return error(entries);
  }
  /// Returns the error with one member replaced.
  std::string instead(const ZipEntry& one) const {
    std::vector<ZipEntry> entries = good_;
    for (ZipEntry& entry : entries) {
      if (entry.name == one.name) entry = one;
    }
    return error(entries);
  }
  std::string config(const std::function<void(Json&)>& change) const {
    Json json = parse_json(entry("config.json").text, "config.json");
    change(json);
    return instead({.name = "config.json", .text = json.dump()});
  }
  /// Returns the error with a layer's configuration changed.
  std::string layer(const std::function<void(Json&)>& change) const {
    return config([&](Json& json) { change(json["config"]["layers"][1]); });
  }

 private:
  test::TempFolder folder_;
  std::vector<ZipEntry> good_;
};

/// A model whose weights must stay unchanged.
class WeightsGuard {
 public:
  WeightsGuard() : model_(small_model(7)) {
    for (const at::Tensor& weight : model_->get_weights()) before_.push_back(weight.clone());
  }
  /// Returns the error of loading weights; checks that a failed load left the model's weights
  /// unchanged.
  std::string error(const std::string& path) {
    const std::string line = test::error_line([&] { model_.load_weights(path); });
    const std::vector<at::Tensor> after = model_->get_weights();
    bool unchanged = after.size() == before_.size();
    for (size_t i = 0; unchanged && i < after.size(); ++i) unchanged = after[i].equal(before_[i]);
    CHECK(unchanged == (line != "no error"));
    return line;
  }

 private:
  ModelHandle model_;
  std::vector<at::Tensor> before_;
};

void collect_strings(Json& json, std::vector<Json*>& strings) {
  if (json.is_string()) strings.push_back(&json);
  if (!json.is_structured()) return;
  for (Json& part : json) collect_strings(part, strings);
}

}  // namespace

TEST_CASE("the helpers of this test load an unmodified model") {
  const Hostile hostile;
  CHECK(hostile.config([](Json&) {}) == "no error");
  CHECK(hostile.layer([](Json&) {}) == "no error");
  CHECK(hostile.with({.name = "assets/layers/x/vocabulary.txt", .text = "a\nb"}) == "no error");
  ZipEntry packed = hostile.entry("model.weights.h5");
  packed.method = 8;
  CHECK(hostile.instead(packed) == "no error");
}

TEST_CASE("malicious archives of models are refused") {
  const Hostile hostile;
  for (const char* name :
       {"../x", "/tmp/x", "assets/../../x", "assets\\..\\x", "assets//x", "..", "assets/x\n"}) {
    CAPTURE(name);
    CHECK_THAT(hostile.with({.name = name, .text = "x"}),
               Contains("names inside the archive's folder"));
  }
  CHECK_THAT(hostile.with({.name = "assets/l", .text = "/etc", .mode = S_IFLNK | 0777}),
             Contains("\"assets/l\", a link or device"));
  CHECK_THAT(hostile.with({.name = "config.json", .text = "{}"}),
             Contains("\"config.json\" twice"));
  ZipEntry config = hostile.entry("config.json"), weights = hostile.entry("model.weights.h5");
  CHECK_THAT(hostile.error({config}), Contains("no model.weights.h5"));
  CHECK_THAT(hostile.error({weights}), Contains("no config.json"));
  CHECK_THAT(hostile.error({config, {.name = "model.weights.npz", .text = "PK"}}),
             Contains("weights in model.weights.h5. Received: model.weights.npz."));
  config.method = 8;
  config.says_bytes = uint64_t{1} << 27;
  CHECK_THAT(hostile.error({config, weights}), Contains("134217728 bytes of \"config.json\"."));
  config.says_bytes = (uint64_t{1} << 28) + 1;
  CHECK_THAT(hostile.error({config, weights}),
             Contains("at most 268435456 bytes of \"config.json\". Received: 268435457."));
  weights.says_bytes = uint64_t{5} << 30;
  weights.method = 8;
  weights.wide = true;
  CHECK_THAT(hostile.error({hostile.entry("config.json"), weights}),
             Contains("at most 100 times the ") && Contains("5368709120 bytes of"));
  weights = hostile.entry("model.weights.h5");
  weights.flags = 1;
  CHECK_THAT(hostile.instead(weights), Contains("encrypted"));
  weights = hostile.entry("model.weights.h5");
  weights.text.resize(weights.text.size() - 8);
  CHECK_THAT(hostile.instead(weights), Contains("not an HDF5 file"));
}

TEST_CASE("a configuration cannot run code, open files or name anything but layers") {
  const Hostile hostile;
  const Json code{{"class_name", "__lambda__"},
                  {"config", {{"code", "4wEAAAA="}, {"defaults", nullptr}, {"closure", nullptr}}}};
  const auto lambda = [&](Json& layer) {
    layer["class_name"] = "Lambda";
    layer["config"]["function"] = code;
  };
  CHECK_THAT(hostile.layer(lambda), Contains("config.json") && Contains("Lambda"));
  CHECK_THAT(hostile.layer([&](Json& layer) { layer["config"]["activation"] = code; }),
             Contains("activation"));
  const Json system{{"module", "os"},
                    {"class_name", "function"},
                    {"config", "system"},
                    {"registered_name", "function"}};
  for (const char* key : {"activation", "kernel_initializer", "kernel_regularizer", "dtype"}) {
    CAPTURE(key);
    CHECK_THAT(hostile.layer([&](Json& layer) { layer["config"][key] = system; }), Contains(key));
    CHECK_THAT(hostile.layer([&](Json& layer) { layer["config"][key] = "/etc/passwd"; }),
               Contains("/etc/passwd"));
  }
  CHECK_THAT(hostile.layer([&](Json& layer) { layer = system; }), Contains("config.json"));
  CHECK_THAT(hostile.layer([](Json& layer) { layer["class_name"] = "TorchModuleWrapper"; }),
             Contains("TorchModuleWrapper"));
  CHECK_THAT(hostile.layer([](Json& layer) { layer["class_name"] = "TFSMLayer"; }),
             Contains("TFSMLayer"));
  CHECK_THAT(hostile.layer([](Json& layer) { layer["config"]["name"] = "../../x"; }),
             Contains("../../x"));
  CHECK_THAT(hostile.config([&](Json& json) { json["class_name"] = "../Model"; }),
             Contains("../Model"));
}

TEST_CASE("an invalid, too deep, cyclic or too large configuration is refused") {
  const Hostile hostile;
  const auto text = [&](const std::string& config) {
    return hostile.instead({.name = "config.json", .text = config});
  };
  CHECK_THAT(text(""), Contains("config.json"));
  CHECK_THAT(text("[]"), Contains("config.json"));
  CHECK_THAT(text("null"), Contains("config.json"));
  CHECK_THAT(text("{\"class_name\": \"Functional\"}"), Contains("config.json"));
  CHECK_THAT(text("{\"a\"\0: 1}"), Contains("config.json"));
  CHECK_THAT(text(std::string("{\0}", 3)), Contains("NUL"));
  CHECK_THAT(text(std::string(100000, '[')), Contains("64 deep"));
  CHECK_THAT(text("{\"a\": 1, \"a\": 2}"), Contains("config.json"));
  CHECK_THAT(hostile.config([](Json& json) {
    for (int i = 0; i < 1000; ++i) json = Json{{"config", std::move(json)}};
  }),
             Contains("64 deep"));
  // A layer whose input is its own output.
  CHECK_THAT(hostile.layer([](Json& layer) {
    Json& history = layer["inbound_nodes"][0]["args"][0]["config"]["keras_history"];
    history[0] = "first";
  }),
             Contains("first"));
  for (const Json& units : {Json(0), Json(-1), Json(int64_t{1} << 40), Json(int64_t{1} << 62),
                            Json(1e300), Json("3"), Json(nullptr)}) {
    CAPTURE(units);
    CHECK_THAT(hostile.layer([&](Json& layer) { layer["config"]["units"] = units; }),
               Contains("units") || Contains("first"));
  }
}

TEST_CASE("no text of a saved model's configuration is opened as a file") {
  const Hostile hostile;
  const std::string trap = hostile.path("trap.txt");
  test::write_file(trap, "a\nb\n");
  const int queue = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  REQUIRE(::inotify_add_watch(queue, trap.c_str(), IN_OPEN) >= 0);
  const auto opens = [&] {
    int count = 0;
    inotify_event event{};
    while (::read(queue, &event, sizeof(event)) > 0) ++count;
    return count;
  };
  size_t count = 1;
  for (size_t n = 0; n < count; ++n) {
    hostile.config([&](Json& json) {
      std::vector<Json*> strings;
      collect_strings(json, strings);
      count = strings.size();
      *strings[n] = trap;
    });
  }
  CHECK(count > 30);
  CHECK(opens() == 0);
  test::read_file(trap);
  CHECK(opens() == 1);
  ::close(queue);
}

TEST_CASE("malicious HDF5 files leave a model's weights unchanged") {
  const Hostile hostile;
  WeightsGuard guard;
  size_t named = 0;
  const std::vector<test::Hdf5Case> cases = test::hdf5_cases("refused");
  for (const test::Hdf5Case& one : cases) {
    CAPTURE(one.name);
    const std::string path = hostile.path("bad.weights.h5");
    test::write_file(path, one.bytes);
    const std::string line = guard.error(path);
    CHECK_THAT(line, StartsWith("[" + path + "] "));
    named += line.find(one.about["says"].get<std::string>()) != std::string::npos;
    CHECK(hostile.instead({.name = "model.weights.h5", .text = one.bytes}) != "no error");
  }
  // The others are refused only when their data is read, of which this model needs none.
  CHECK(named + 5 >= cases.size());
  CHECK(guard.error(hostile.path("good.weights.h5")) == "no error");
}

TEST_CASE("a weight map may name only files next to it") {
  const Hostile hostile;
  WeightsGuard guard;
  const std::string path = hostile.path("x.weights.json");
  const auto map = [&](const Json& files) {
    test::write_file(path, Json{{"metadata", {{"total_size", 1.0}}},
                                {"weight_map", {{"/layers/first/vars", files}}}}
                               .dump());
    return guard.error(path);
  };
  for (const char* name : {"../x.weights.h5", "/etc/x.weights.h5", "a/b.weights.h5", "x.h5",
                           "/etc/passwd", "..", ""}) {
    CAPTURE(name);
    CHECK_THAT(map(name), StartsWith("[" + path) && Contains("the name of a file beside it"));
    CHECK_THAT(map({name}), Contains("the name of a file beside it"));
  }
  CHECK_THAT(map(std::string("good.weights.h5\0.weights.h5", 27)),
             Contains("the name of a file beside it"));
  CHECK_THAT(map("none.weights.h5"), Contains("none.weights.h5] ") && Contains("No such file"));
  CHECK_THAT(map(7), Contains(path));
  CHECK_THAT(map(Json::object()), Contains(path));
  test::write_file(path, "{\"weight_map\": []}");
  CHECK_THAT(guard.error(path), Contains(path));
  test::write_file(path, std::string(100000, '['));
  CHECK_THAT(guard.error(path), Contains(path));
}

TEST_CASE("a model folder must hold regular files") {
  const Hostile hostile;
  small_model().save(hostile.path("m"), {.zipped = false});
  const auto error = [&] { return test::error_line([&] { load_model(hostile.path("m")); }); };
  CHECK(error() == "no error");
  for (const char* name : {"config.json", "model.weights.h5"}) {
    CAPTURE(name);
    const fs::path file = fs::path(hostile.path("m")) / name;
    fs::rename(file, hostile.path("kept"));
    CHECK_THAT(error(), Contains(str("no ", name)));
    REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
    CHECK_THAT(error(), Contains(name));
    fs::remove(file);
    fs::create_directory(file);
    CHECK_THAT(error(), Contains(name));
    fs::remove(file);
    fs::create_symlink("/dev/zero", file);
    CHECK_THAT(error(), Contains(name));
    fs::remove(file);
    fs::rename(hostile.path("kept"), file);
  }
  CHECK(error() == "no error");
}

TEST_CASE("changed bytes around an archive's weights, and truncations, are read or refused") {
  const Hostile hostile;
  const std::string path = hostile.path("bad.keras");
  const std::string bytes = test::read_file(hostile.path("good.keras"));
  const ZipArchive archive(hostile.path("good.keras"));
  const ZipMember& weights = *archive.find("model.weights.h5");
  size_t refused = 0, read = 0;
  const auto load = [&](const std::string& changed) {
    test::write_file(path, changed);
    const std::string line = test::error_line([&] { load_model(path); });
    (line == "no error" ? read : refused) += 1;
    if (line != "no error" && !line.starts_with("[" + path)) FAIL_CHECK(line);
  };
  for (size_t at = 0; at < bytes.size(); ++at) {
    // The weights' own bytes are changed in checksum_test.
    if (at >= weights.offset && at < weights.offset + weights.bytes) continue;
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    load(changed);
  }
  CHECK(refused > 1500);
  CHECK(read > 20);
  read = 0;
  for (size_t length = 0; length < bytes.size(); ++length) load(bytes.substr(0, length));
  CHECK(read == 0);
}

TEST_CASE("mutated weights are loaded completely or not at all") {
  const Hostile hostile;
  WeightsGuard guard;
  const std::string path = hostile.path("bad.weights.h5");
  const std::string bytes = test::read_file(hostile.path("good.weights.h5"));
  std::mt19937 random(3);
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    std::string changed = bytes;
    for (int n = 0; n < 20; ++n) changed[random() % changed.size()] = static_cast<char>(random());
    test::write_file(path, changed);
    ModelHandle model = small_model();
    const std::string line = test::error_line([&] { model.load_weights(path); });
    if (line == "no error") continue;
    ++refused;
    CHECK_THAT(line, StartsWith("[" + path + "] "));
    CHECK(guard.error(path) == line);
  }
  CHECK(refused > 20);
}

}  // namespace keras_hostile_test
