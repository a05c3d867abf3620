#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>

namespace tessera::bench {

using namespace detail;

/// What one contender took: a value for each round, of which the least is compared.
struct Figure {
  std::string who;
  std::vector<double> rounds = {};
  std::string unit = "ms";
  double least() const;
};

/// A bound that a value has to keep.
struct Bar {
  double value = 0;
  bool at_most = true;
  bool met_by(double other) const { return at_most ? other <= value : other >= value; }
};

/// What our figure comes to beside another one.
struct Judgement {
  double value = 0;
  std::optional<Bar> bar = std::nullopt;
  std::string unit = "";  ///< "": a ratio
};

/// Ours over theirs, and what it may be at most.
Judgement ratio(const Figure& own, const Figure& other, std::optional<double> most = std::nullopt);
/// Ours less theirs.
Judgement difference(const Figure& own, const Figure& other, double most);

/// The table of what was compared: under each figure of ours those it is compared with.
class Comparison {
 public:
  /// Begins a piece of work; a judgement is of the figure by itself.
  void add_own(const std::string& work, const Figure& own,
               std::optional<Judgement> judgement = std::nullopt);
  void add_other(const Figure& other, const Judgement& judgement);
  std::string to_string() const;
  Json to_json() const;

 private:
  struct Row {
    std::string work;
    bool own;
    Figure figure;
    std::optional<Judgement> judgement;
  };
  std::vector<Row> rows_;
};

}  // namespace tessera::bench
