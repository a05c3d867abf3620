#include <tessera/framework/nn/initializers/regularizers.hpp>

#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/l2_normalize.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {
namespace {

double checked(const char* where, const char* name, double factor) {
  if (std::isfinite(factor) && factor >= 0) return factor;
  throw ConfigError(where, str(name, " is finite and not negative"), str(factor),
                    "give a small factor such as 0.01");
}

DTensor absolute_sum(const DTensor& x) { return ops::sum(ops::abs(x)); }
DTensor square_sum(const DTensor& x) { return ops::sum(ops::square(x)); }

class L1Regularizer : public Regularizer {
 public:
  explicit L1Regularizer(double l1) : l1_(checked("L1", "l1", l1)) {}
  std::string class_name() const override { return "L1"; }
  Json config() const override { return {{"l1", l1_}}; }
  DTensor operator()(const DTensor& x) const override { return absolute_sum(x) * l1_; }

 private:
  double l1_;
};

class L2Regularizer : public Regularizer {
 public:
  explicit L2Regularizer(double l2) : l2_(checked("L2", "l2", l2)) {}
  std::string class_name() const override { return "L2"; }
  Json config() const override { return {{"l2", l2_}}; }
  DTensor operator()(const DTensor& x) const override { return square_sum(x) * l2_; }

 private:
  double l2_;
};

class L1L2Regularizer : public Regularizer {
 public:
  explicit L1L2Regularizer(L1L2Options options)
      : l1_(checked("L1L2", "l1", options.l1)), l2_(checked("L1L2", "l2", options.l2)) {}
  std::string class_name() const override { return "L1L2"; }
  Json config() const override { return {{"l1", l1_}, {"l2", l2_}}; }
  DTensor operator()(const DTensor& x) const override {
    return absolute_sum(x) * l1_ + square_sum(x) * l2_;
  }

 private:
  double l1_;
  double l2_;
};

class RowsOrColumns : public Regularizer {
 public:
  explicit RowsOrColumns(OrthogonalRegularizerOptions options)
      : factor_(checked("OrthogonalRegularizer", "factor", options.factor)), mode_(options.mode) {}
  std::string class_name() const override { return "OrthogonalRegularizer"; }
  Json config() const override {
    return {{"factor", factor_}, {"mode", by_rows() ? "rows" : "columns"}};
  }
  DTensor operator()(const DTensor& x) const override {
    if (x.rank() != 2) {
      throw ShapeError(class_name(), "it is of a matrix", to_string(x.shape()),
                       "use another regularizer");
    }
    const int64_t count = x.size(by_rows() ? 0 : 1);
    const DTensor unit = l2_normalize(x, by_rows() ? 1 : 0);
    const DTensor cosines = ops::matmul(unit, unit, !by_rows(), by_rows());
    const at::Tensor others = 1 - at::eye(count, x.dtype());
    const DTensor off_diagonal = cosines * pack(others, Layout::replicated(x.mesh(), 2));
    const double pairs = double(count) * double(count - 1) / 2;
    return absolute_sum(off_diagonal) * (factor_ / 2 / pairs);
  }

 private:
  bool by_rows() const { return mode_ == OrthogonalMode::rows; }

  double factor_;
  OrthogonalMode mode_;
};

template <class Made, class... Args>
RegularizerHandle make_regularizer_of(Args&&... args) {
  return std::shared_ptr<const Regularizer>(std::make_shared<Made>(std::forward<Args>(args)...));
}

RegularizerHandle l1_l2(JsonObject& config) {
  const auto l1 = config.take_or<double>("l1", 0);
  return L1L2({.l1 = l1, .l2 = config.take_or<double>("l2", 0)});
}

RegularizerHandle orthogonal_from(JsonObject& config) {
  OrthogonalRegularizerOptions options;
  options.factor = config.take_or("factor", options.factor);
  const auto mode = config.take_or<std::string>("mode", "rows");
  if (mode != "rows" && mode != "columns") {
    json_fail(mode, config.path().key("mode"), "\"rows\" or \"columns\"");
  }
  if (mode == "columns") options.mode = OrthogonalMode::columns;
  return OrthogonalRegularizer(options);
}

}  // namespace

L1::L1(double l1) : RegularizerHandle(make_regularizer_of<L1Regularizer>(l1)) {}
L2::L2(double l2) : RegularizerHandle(make_regularizer_of<L2Regularizer>(l2)) {}
L1L2::L1L2(L1L2Options options)
    : RegularizerHandle(make_regularizer_of<L1L2Regularizer>(options)) {}
OrthogonalRegularizer::OrthogonalRegularizer(OrthogonalRegularizerOptions options)
    : RegularizerHandle(make_regularizer_of<RowsOrColumns>(options)) {}

const ConfigFactories<RegularizerHandle>& regularizer_factories() {
  static const ConfigFactories<RegularizerHandle> factories = {
      {"l1", [](JsonObject& config) { return L1(config.take_or("l1", 0.01)); }},
      {"l1_l2", l1_l2},
      {"l1l2", l1_l2},
      {"l2", [](JsonObject& config) { return L2(config.take_or("l2", 0.01)); }},
      {"orthogonal_regularizer", orthogonal_from},
  };
  return factories;
}

RegularizerHandle make_regularizer(const std::string& name) {
  return make_default("regularizer", regularizer_factories(), name);
}

RegularizerHandle::RegularizerHandle(const char* name)
    : RegularizerHandle(make_regularizer(name)) {}

}  // namespace tessera
