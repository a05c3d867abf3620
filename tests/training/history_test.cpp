#include <tessera/framework/training/history.hpp>

#include <cmath>

#include <nlohmann/json.hpp>

#include <tessera/framework/base/error.hpp>
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace history_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

History sample() {
  History h;
  h.data = "mnist";
  h.append(0, {{"accuracy", 0.5}, {"loss", 1.0 / 3}, {"val_loss", 0.25}});
  h.append(1, {{"accuracy", 0.75}, {"loss", 0.1}, {"val_loss", 0.125}});
  h.steps = {2.302585092994046, 1e-300};
  return h;
}

}  // namespace

TEST_CASE("a history keeps the course of every value", "[history]") {
  const History h = sample();
  CHECK(h.epoch == std::vector<int64_t>{0, 1});
  CHECK(h.at("loss") == std::vector<double>{1.0 / 3, 0.1});
  CHECK(h.at("val_loss") == std::vector<double>{0.25, 0.125});
  CHECK_THROWS_WITH(h.at("lost"),
                    "[history] has accuracy, loss, val_loss. Received: \"lost\". To fix: ask for a "
                    "value that fit reported.");
  CHECK_THROWS_AS(History().at("loss"), StateError);
}

TEST_CASE("a history is written with sorted keys and numbers in full precision", "[history]") {
  CHECK(sample().to_json() ==
        R"({"history":{"accuracy":[0.5,0.75],"loss":[0.3333333333333333,0.1],)"
        R"("val_loss":[0.25,0.125]},"steps":[2.302585092994046,1e-300],"epoch":[0,1],)"
        R"("data":"mnist"})");
  CHECK(History().to_json() == R"({"history":{},"steps":[],"epoch":[],"data":""})");
  const auto read = nlohmann::json::parse(sample().to_json());
  CHECK(read["history"]["loss"][0].get<double>() == 1.0 / 3);
}

TEST_CASE("a history with a non-finite value is still JSON", "[history]") {
  History h;
  h.data = "bad \xff name";
  h.append(0, {{"loss", std::nan("")}, {"accuracy", INFINITY}});
  const auto read = nlohmann::json::parse(h.to_json());
  CHECK(read["history"]["loss"][0].is_null());
  CHECK(read["history"]["accuracy"][0].is_null());
}

TEST_CASE("a history is read back", "[history]") {
  const JsonPath path("file");
  const History read = History::from_json(sample().as_json(), path);
  CHECK(read.to_json() == sample().to_json());
  History h;
  h.append(0, {{"loss", std::nan("")}});
  const Json text = parse_json(h.to_json(), "file");
  CHECK(std::isnan(History::from_json(text, path).at("loss")[0]));
  Json wrong = sample().as_json();
  wrong["history"]["loss"][1] = "low";
  CHECK_THROWS_WITH(History::from_json(wrong, path),
                    Catch::Matchers::Contains("[file: history.loss[1]]"));
  CHECK_THROWS_AS(History::from_json(Json::array(), path), ConfigError);
}

TEST_CASE("a history is saved atomically", "[history]") {
  const test::TempFolder folder;
  const std::string path = (folder / "history.json").string();
  sample().save(path);
  CHECK(test::read_file(path) == sample().to_json() + "\n");
  History().save(path);
  CHECK(test::read_file(path) == History().to_json() + "\n");
  CHECK_THROWS_AS(sample().save((folder / "none" / "history.json").string()), FileError);
}

}  // namespace history_test
