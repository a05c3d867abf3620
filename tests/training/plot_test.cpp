#include <tessera/framework/training/plot_history.hpp>

#include <algorithm>
#include <cmath>

#include <tessera/framework/base/error.hpp>
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/xml_check.hpp"

namespace plot_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

History course(int epochs, const std::vector<std::string>& names) {
  History history;
  history.data = "mnist (synthetic)";
  for (int epoch = 0; epoch < epochs; ++epoch) {
    Logs logs;
    for (const std::string& name : names) logs.emplace_back(name, 1.0 / (epoch + 1));
    history.append(epoch, logs);
  }
  return history;
}

test::Xml drawn(const History& history, const PlotOptions& options = {}) {
  const test::Xml xml = test::parse_xml(plot_svg(history, options));
  CHECK(xml.error == "");
  return xml;
}

int position(const test::Xml& xml, const std::string& text) {
  const std::vector<std::string> texts = xml.texts("text");
  const auto found = std::find(texts.begin(), texts.end(), text);
  return found == texts.end() ? -1 : static_cast<int>(found - texts.begin());
}

/// Returns the attributes of all circles, which mark training values.
std::vector<std::string> circles(const test::Xml& xml) {
  std::vector<std::string> centres;
  for (const auto& element : xml.elements) {
    if (element.name == "circle") centres.push_back(element.attributes);
  }
  return centres;
}

}  // namespace

TEST_CASE("a plot has a panel for each value, the loss first", "[plot]") {
  const test::Xml xml = drawn(course(3, {"accuracy", "loss", "val_accuracy", "val_loss"}));
  CHECK(xml.texts("title") == std::vector<std::string>{"Training on mnist (synthetic)"});
  CHECK(position(xml, "3 epochs") == 1);
  CHECK(position(xml, "loss") > 0);
  CHECK(position(xml, "loss") < position(xml, "accuracy"));
  CHECK(position(xml, "val_loss") == -1);
  CHECK(position(xml, "validation, last 0.3333") > 0);
  // Two panels with two lines each; markers for three epochs and the legend.
  CHECK(xml.count("polyline") == 4);
  CHECK(xml.count("circle") == 2 * (3 + 1));
}

TEST_CASE("a custom title still names the data", "[plot]") {
  const test::Xml xml = drawn(course(1, {"loss"}), {.title = "Dense <700>"});
  CHECK(position(xml, "Dense <700>") == 0);
  CHECK(position(xml, "mnist (synthetic), 1 epoch") == 1);
}

TEST_CASE("a single epoch is a point", "[plot]") {
  const test::Xml xml = drawn(course(1, {"loss"}));
  CHECK(xml.count("polyline") == 0);
  CHECK(xml.count("circle") == 2);
}

TEST_CASE("many epochs are lines without markers", "[plot]") {
  const test::Xml xml = drawn(course(200, {"loss", "val_loss"}));
  CHECK(xml.count("circle") == 0);
  CHECK(xml.count("polyline") == 2);
}

TEST_CASE("non-finite values interrupt the line and are marked", "[plot]") {
  History history = course(6, {"loss"});
  history.history[0].second[2] = NAN;
  history.history[0].second[4] = -INFINITY;
  const test::Xml xml = drawn(history);
  CHECK(xml.count("polyline") == 1);
  CHECK(xml.count("path") == 2);
  CHECK(xml.count("circle") == 4 + 1);
  history.history[0].second.assign(6, NAN);
  CHECK(position(drawn(history), "no finite value") > 0);
  CHECK(position(drawn(history), "training, last nan") > 0);
}

TEST_CASE("validations of every second epoch are drawn at their epochs", "[plot]") {
  History history = course(5, {"loss"});
  history.history.push_back({"val_loss", {0.5, 0.4}});
  history.history.push_back({"other", {0.5, 0.4}});
  const auto centres = circles(drawn(history, {.columns = 1}));
  // Five circles of the loss, the legend's, then those of "other" at epochs 2 and 4.
  REQUIRE(centres.size() == 5 + 1 + 2 + 1);
  const auto x = [](const std::string& circle) { return circle.substr(0, circle.find(" cy")); };
  CHECK(x(centres[6]) == x(centres[1]));
  CHECK(x(centres[7]) == x(centres[3]));
  CHECK(position(drawn(history, {.validation_freq = 3}), "validation, last 0.4") > 0);
  history.history[1].second = {0.5, 0.4, 0.3, 0.2, 0.1, 0};
  drawn(history);
}

TEST_CASE("names of any length and kind fit into a plot", "[plot]") {
  std::vector<std::string> names = {"loss"};
  for (int i = 0; i < 8; ++i) names.push_back(std::string(200, 'm') + std::to_string(i));
  names.push_back("a & \xff <b>");
  const test::Xml xml = drawn(course(2, names));
  CHECK(position(xml, "a & \\xff <b>") > 0);
  for (const std::string& text : xml.texts("text")) CHECK(text.size() < 80);
}

TEST_CASE("a plot of nothing says so", "[plot]") {
  const test::Xml xml = drawn(History());
  CHECK(position(xml, "Training") == 0);
  CHECK(position(xml, "no values yet") > 0);
}

TEST_CASE("a plot is saved atomically", "[plot]") {
  const test::TempFolder folder;
  const std::string path = (folder / "plot.svg").string();
  const History history = course(2, {"loss"});
  save_plot(history, path);
  CHECK(test::read_file(path) == plot_svg(history));
  CHECK_THROWS_AS(save_plot(history, (folder / "none" / "plot.svg").string()), FileError);
  CHECK_THROWS_AS(plot_svg(history, {.columns = -1}), ConfigError);
}

}  // namespace plot_test
