#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/model/model.hpp>
#include <tessera/framework/training/batch_loader.hpp>
#include <tessera/framework/training/logs.hpp>
#include <tessera/framework/training/options.hpp>

namespace tessera {

/// What compile() leaves in a model.
struct Model::Training {
  OptimizerRef optimizer;
  LossRef loss;
  std::vector<std::shared_ptr<Metric>> metrics;
  LayoutMap layouts;
  bool placed = false;

  void reset_metrics() const;
  /// Loss and metrics by name, alphabetically. Collective.
  Logs logs(double mean_loss) const;
};

/// The mean of losses over rows: a short batch counts for its rows.
class RowMean {
 public:
  void add(double value, int64_t rows) {
    sum_ += value * static_cast<double>(rows);
    rows_ += rows;
  }
  double value() const { return rows_ ? sum_ / static_cast<double>(rows_) : 0; }

 private:
  double sum_ = 0;
  int64_t rows_ = 0;
};

/// Ticks at most every 50 ms: when a bar would be redrawn, its values are worth reading.
class ReadingClock {
 public:
  bool due();

 private:
  double last_ = -1;
};

/// The number in a loss, reduced if it is pending. Collective.
double read_loss(const DTensor& loss);

/// Throws ConfigError naming the argument, the caller and what was received.
void check_positive(const std::string& caller, const std::string& argument, int64_t value);

}  // namespace tessera
