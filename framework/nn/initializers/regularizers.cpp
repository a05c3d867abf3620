#include <tessera/framework/nn/initializers/regularizers.hpp>

#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/l2_normalize.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

using namespace detail;

void read_option(JsonObject& config, const std::string& key, OrthogonalMode& out) {
  const auto mode = config.take_or<std::string>(key, "rows");
  if (mode != "rows" && mode != "columns") {
    json_fail(mode, config.path().key(key), "\"rows\" or \"columns\"");
  }
  out = mode == "rows" ? OrthogonalMode::rows : OrthogonalMode::columns;
}

template <class Visit>
void fields(L1L2Options& o, const Visit& visit) {
  visit("l1", o.l1);
  visit("l2", o.l2);
}

template <class Visit>
void fields(OrthogonalRegularizerOptions& o, const Visit& visit) {
  visit("factor", o.factor);
  visit("mode", o.mode);
}

namespace {

const Registered registered_l1(regularizer_factories(), {"l1"},
                               [](JsonObject& config) { return L1(config.take_or("l1", 0.01)); });
const Registered registered_l2(regularizer_factories(), {"l2"},
                               [](JsonObject& config) { return L2(config.take_or("l2", 0.01)); });
const Registered registered_l1_l2(regularizer_factories(), {"l1_l2", "l1l2"},
                                  made_of<L1L2, L1L2Options>);
const Registered registered_orthogonal_regularizer(
    regularizer_factories(), {"orthogonal_regularizer"},
    made_of<OrthogonalRegularizer, OrthogonalRegularizerOptions>);

double checked(const char* where, const char* name, double factor) {
  if (std::isfinite(factor) && factor >= 0) return factor;
  throw ConfigError(where, str(name, " is finite and not negative"), str(factor),
                    "give a small factor such as 0.01");
}

// A penalty on a batch's activations overflows in float16.
DTensor absolute_sum(const DTensor& x) { return ops::sum(ops::abs(widened(x))); }
DTensor square_sum(const DTensor& x) { return ops::sum(ops::square(widened(x))); }

class L1Regularizer : public Regularizer {
 public:
  explicit L1Regularizer(double l1) : l1_(checked("L1", "l1", l1)) {}
  std::string class_name() const override { return "L1"; }
  Json config() const override { return {{"l1", l1_}}; }
  bool can_be_replayed() const override { return true; }
  DTensor operator()(const DTensor& x) const override { return absolute_sum(x) * l1_; }

 private:
  double l1_;
};

class L2Regularizer : public Regularizer {
 public:
  explicit L2Regularizer(double l2) : l2_(checked("L2", "l2", l2)) {}
  std::string class_name() const override { return "L2"; }
  Json config() const override { return {{"l2", l2_}}; }
  bool can_be_replayed() const override { return true; }
  DTensor operator()(const DTensor& x) const override { return square_sum(x) * l2_; }

 private:
  double l2_;
};

class L1L2Regularizer : public Regularizer {
 public:
  explicit L1L2Regularizer(L1L2Options options) : options_(options) {
    checked("L1L2", "l1", options.l1);
    checked("L1L2", "l2", options.l2);
  }
  std::string class_name() const override { return "L1L2"; }
  Json config() const override { return config_of(options_); }
  bool can_be_replayed() const override { return true; }
  DTensor operator()(const DTensor& x) const override {
    return absolute_sum(x) * options_.l1 + square_sum(x) * options_.l2;
  }

 private:
  L1L2Options options_;
};

class RowsOrColumns : public Regularizer {
 public:
  explicit RowsOrColumns(OrthogonalRegularizerOptions options) : options_(options) {
    checked("OrthogonalRegularizer", "factor", options.factor);
  }
  std::string class_name() const override { return "OrthogonalRegularizer"; }
  Json config() const override { return config_of(options_); }
  bool can_be_replayed() const override { return true; }
  DTensor operator()(const DTensor& x) const override {
    if (x.rank() != 2) {
      throw ShapeError(class_name(), "the weight must be a matrix", to_string(x.shape()),
                       "use another regularizer");
    }
    const int64_t count = x.size(by_rows() ? 0 : 1);
    const DTensor unit = l2_normalize(widened(x), by_rows() ? 1 : 0);
    const DTensor cosines = ops::matmul(unit, unit, !by_rows(), by_rows());
    const at::Tensor others = 1 - at::eye(count, unit.dtype());
    const DTensor off_diagonal = cosines * pack(others, Layout::replicated(x.mesh(), 2));
    const double pairs = double(count) * double(count - 1) / 2;
    return absolute_sum(off_diagonal) * (options_.factor / 2 / pairs);
  }

 private:
  bool by_rows() const { return options_.mode == OrthogonalMode::rows; }

  OrthogonalRegularizerOptions options_;
};

template <class Made, class... Args>
RegularizerHandle make_regularizer_of(Args&&... args) {
  return std::shared_ptr<const Regularizer>(std::make_shared<Made>(std::forward<Args>(args)...));
}

}  // namespace

L1::L1(double l1) : RegularizerHandle(make_regularizer_of<L1Regularizer>(l1)) {}
L2::L2(double l2) : RegularizerHandle(make_regularizer_of<L2Regularizer>(l2)) {}
L1L2::L1L2(L1L2Options options)
    : RegularizerHandle(make_regularizer_of<L1L2Regularizer>(options)) {}
OrthogonalRegularizer::OrthogonalRegularizer(OrthogonalRegularizerOptions options)
    : RegularizerHandle(make_regularizer_of<RowsOrColumns>(options)) {}

ConfigFactories<RegularizerHandle>& detail::regularizer_factories() {
  static ConfigFactories<RegularizerHandle> factories;
  return factories;
}

RegularizerHandle detail::make_regularizer(const std::string& name) {
  return make_default("regularizer", regularizer_factories(), name);
}

RegularizerHandle::RegularizerHandle(const char* name)
    : RegularizerHandle(make_regularizer(name)) {}

}  // namespace tessera
