#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>

namespace tessera::bench {

using namespace detail;

/// The measurements of a contender, one per round; their minimum is compared.
struct Figure {
  std::string who;
  std::vector<double> rounds = {};
  std::string unit = "ms";
  double least() const;
};

/// A bound that a value should meet.
struct Bar {
  double value = 0;
  bool at_most = true;
  bool met_by(double other) const { return at_most ? other <= value : other >= value; }
};

/// The comparison of our figure with another one.
struct Verdict {
  double value = 0;
  std::optional<Bar> bar = std::nullopt;
  std::string unit = "";  ///< "": a ratio
};

/// Returns our figure divided by the other one, which may be at most `limit`.
Verdict ratio(const Figure& own, const Figure& other, std::optional<double> limit = std::nullopt);
/// Returns our figure minus the other one, which may be at most `limit`.
Verdict difference(const Figure& own, const Figure& other, double limit);

/// The table of results: below each of our figures, those that it is compared with.
class Comparison {
 public:
  /// Begins a work with our figure; `verdict` judges that figure alone.
  void add_own(const std::string& work, const Figure& own,
               std::optional<Verdict> verdict = std::nullopt);
  void add_other(const Figure& other, const Verdict& verdict);
  std::string to_string() const;
  Json to_json() const;

 private:
  struct Row {
    std::string work;
    bool own;
    Figure figure;
    std::optional<Verdict> verdict;
  };
  std::vector<Row> rows_;
};

}  // namespace tessera::bench
