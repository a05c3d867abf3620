#include "apps/bench/comparison.hpp"

#include <algorithm>

#include "apps/bench/timing.hpp"
#include "apps/common/table.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

int decimals(double value) { return value < 10 ? 3 : 1; }

std::string text_of(const Verdict& verdict) {
  if (verdict.unit.empty()) return app::fixed(verdict.value, 3);
  return app::fixed(verdict.value, 2) + " " + verdict.unit;
}

std::string text_of(const Bar& bar, const std::string& unit) {
  return (bar.at_most ? "<= " : ">= ") + text_of(Verdict{bar.value, {}, unit});
}

}  // namespace

double Figure::least() const { return *std::min_element(rounds.begin(), rounds.end()); }

Verdict ratio(const Figure& own, const Figure& other, std::optional<double> limit) {
  Verdict verdict{own.least() / other.least()};
  if (limit) verdict.bar = Bar{*limit};
  return verdict;
}

Verdict difference(const Figure& own, const Figure& other, double limit) {
  return {own.least() - other.least(), Bar{limit}, own.unit};
}

void Comparison::add_own(const std::string& work, const Figure& own,
                         std::optional<Verdict> verdict) {
  rows_.push_back({work, true, own, std::move(verdict)});
}

void Comparison::add_other(const Figure& other, const Verdict& verdict) {
  rows_.push_back({rows_.back().work, false, other, verdict});
}

std::string Comparison::to_string() const {
  app::Table table({"work", "who", "median", "least", "unit", "ours to it", "bar", ""}, 2);
  for (const Row& row : rows_) {
    const double least = row.figure.least();
    std::vector<std::string> cells = {row.own ? row.work : "", row.figure.who,
                                      app::fixed(median(row.figure.rounds), decimals(least)),
                                      app::fixed(least, decimals(least)), row.figure.unit};
    if (row.verdict) {
      cells.push_back(text_of(*row.verdict));
      if (const auto& bar = row.verdict->bar) {
        cells.push_back(text_of(*bar, row.verdict->unit));
        cells.push_back(bar->met_by(row.verdict->value) ? "met" : "missed");
      }
    }
    table.add(std::move(cells));
  }
  return table.to_string();
}

Json Comparison::to_json() const {
  Json list = Json::array();
  for (const Row& row : rows_) {
    Json json{{"work", row.work},
              {"who", row.figure.who},
              {"own", row.own},
              {"unit", row.figure.unit},
              {"rounds", row.figure.rounds},
              {"median", median(row.figure.rounds)},
              {"least", row.figure.least()}};
    if (row.verdict) {
      json["ours_to_it"] = row.verdict->value;
      if (const auto& bar = row.verdict->bar) {
        json[bar->at_most ? "at_most" : "at_least"] = bar->value;
        json["met"] = bar->met_by(row.verdict->value);
      }
    }
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace tessera::bench
