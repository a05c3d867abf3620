#include "apps/bench/comparison.hpp"

#include <algorithm>

#include "apps/bench/timing.hpp"
#include "apps/common/table.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

int decimals(double value) { return value < 10 ? 3 : 1; }

std::string text_of(const Judgement& judgement) {
  if (judgement.unit.empty()) return app::fixed(judgement.value, 3);
  return app::fixed(judgement.value, 2) + " " + judgement.unit;
}

std::string text_of(const Bar& bar, const std::string& unit) {
  return (bar.at_most ? "<= " : ">= ") + text_of(Judgement{bar.value, {}, unit});
}

}  // namespace

double Figure::least() const { return *std::min_element(rounds.begin(), rounds.end()); }

Judgement ratio(const Figure& own, const Figure& other, std::optional<double> most) {
  Judgement judgement{own.least() / other.least()};
  if (most) judgement.bar = Bar{*most};
  return judgement;
}

Judgement difference(const Figure& own, const Figure& other, double most) {
  return {own.least() - other.least(), Bar{most}, own.unit};
}

void Comparison::add_own(const std::string& work, const Figure& own,
                         std::optional<Judgement> judgement) {
  rows_.push_back({work, true, own, std::move(judgement)});
}

void Comparison::add_other(const Figure& other, const Judgement& judgement) {
  rows_.push_back({rows_.back().work, false, other, judgement});
}

std::string Comparison::to_string() const {
  app::Table table({"work", "who", "median", "least", "unit", "ours to it", "bar", ""}, 2);
  for (const Row& row : rows_) {
    const double least = row.figure.least();
    std::vector<std::string> cells = {row.own ? row.work : "", row.figure.who,
                                      app::fixed(median(row.figure.rounds), decimals(least)),
                                      app::fixed(least, decimals(least)), row.figure.unit};
    if (row.judgement) {
      cells.push_back(text_of(*row.judgement));
      if (const auto& bar = row.judgement->bar) {
        cells.push_back(text_of(*bar, row.judgement->unit));
        cells.push_back(bar->met_by(row.judgement->value) ? "met" : "missed");
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
    if (row.judgement) {
      json["ours_to_it"] = row.judgement->value;
      if (const auto& bar = row.judgement->bar) {
        json[bar->at_most ? "at_most" : "at_least"] = bar->value;
        json["met"] = bar->met_by(row.judgement->value);
      }
    }
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace tessera::bench
