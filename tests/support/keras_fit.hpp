#pragma once

#include <tessera/tessera.hpp>

#include <functional>
#include <map>
#include <string>

namespace tessera::test {

using namespace detail;

/// Returns a tensor of golden/keras_callbacks.json: "x", "y", "x_val", "y_val", "labels", "weight".
at::Tensor fit_data(const std::string& name, at::ScalarType dtype = at::kFloat);

/// The models of the golden file, with its weights: a tanh layer "hidden" and one or two heads,
/// "out" of one unit and "classes" of three.
class FitModels {
 public:
  explicit FitModels(const LayoutMap& layouts) : layouts_(layouts) {}

  ModelHandle regression(double rate = 0.1, const MetricsChoice& weighted = {}) const;
  ModelHandle regression(const OptimizerHandle& optimizer) const;
  ModelHandle classification(const LossChoice& loss, const MetricsChoice& metrics,
                             const MetricsChoice& weighted = {}) const;
  ModelHandle both(CompileOptions options) const;

 private:
  ModelHandle made(const std::vector<std::string>& heads, CompileOptions options,
                   double penalty = 0) const;

  LayoutMap layouts_;
};

/// A case of the golden file: the model and the arguments of fit.
struct FitRun {
  ModelHandle model;
  DatasetHandle data;
  FitOptions options;
};

/// Makes a case; `log` is a file it may write.
using MakeFitRun = std::function<FitRun(const FitModels&, const std::string& log)>;
using FitCases = std::map<std::string, MakeFitRun>;

/// Makes the regression case, with or without the golden file's validation data.
FitRun regression_run(const FitModels& models, FitOptions options, bool validated);

/// Runs the cases of a section of the golden file on several meshes; compares text, history, rate,
/// weights and file. `cases` must contain all of them, by name.
void check_fit_cases(const std::string& part, const FitCases& cases);

}  // namespace tessera::test
