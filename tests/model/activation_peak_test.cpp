#include <tessera/framework/model/internal/activation_peak.hpp>

#include <tessera/tessera.hpp>

#include <limits>

#include "tests/support/catch.hpp"

namespace activation_peak_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

constexpr double all = std::numeric_limits<double>::infinity();

ActivationPeak peak_of(const ModelHandle& model, const Shape& input, double enough = all,
                       at::ScalarType dtype = at::kFloat) {
  const Layout layout = Layout::replicated(default_mesh(), static_cast<int64_t>(input.size()));
  return activation_peak(model.model(), input, dtype, layout, enough);
}

}  // namespace

TEST_CASE("the peak of a call is what is alive at one time, with the layer that reaches it") {
  const Sequential model({UpSampling1D(10, {.name = "a"}), UpSampling1D(10, {.name = "b"}),
                          AveragePooling1D(100, {.name = "c"})});
  model.build({-1, 2, 3});
  const ActivationPeak peak = peak_of(model, {4, 2, 3});
  // 20 rows from a and 200 from b, twice as b reshapes them, in rows of 3 numbers.
  CHECK(peak.bytes == 4 * 4 * (20 + 200 + 200) * 3);
  CHECK(peak.layer == "b");
  CHECK(peak.shape == Shape{4, 200, 3});
  // Nothing was computed: this shape would fit into no memory.
  CHECK(peak_of(model, {1000000000, 2, 3}).bytes == 4e9 * (20 + 200 + 200) * 3);
}

TEST_CASE("a value that a later layer needs counts until then") {
  const SymbolicTensor x = Input({100});
  const SymbolicTensor one = ReLU({.name = "one"})(x);
  const SymbolicTensor two = ReLU({.name = "two"})(one);
  const SymbolicTensor three = ReLU({.name = "three"})(two);
  const Functional model({x}, {Add({.name = "sum"})({one, three})});
  const ActivationPeak peak = peak_of(model, {1, 100});
  // The first, third and the sum; the second is released.
  CHECK(peak.bytes == 3 * 400);
  CHECK(peak.layer == "three");
}

TEST_CASE("values with masks count like others") {
  const SymbolicTensor x = Input({100, 1});
  const LayerHandle skip = Masking({.name = "skip"});
  std::vector<SymbolicTensor> many;
  for (int i = 0; i < 10; ++i) many.push_back(skip(x));
  const Functional model({x}, {Concatenate({.name = "all"})(many)});
  CHECK(peak_of(model, {1, 100, 1}).bytes >= 2 * 10 * 400);
}

TEST_CASE("planning stops once the limit is exceeded") {
  const Sequential model({UpSampling1D(10, {.name = "a"}), UpSampling1D(10, {.name = "b"})});
  model.build({-1, 1, 1});
  const ActivationPeak peak = peak_of(model, {1, 1, 1}, 30);
  // The reshaped input, and ten copies.
  CHECK(peak.bytes == 4 + 40);
  CHECK(peak.layer == "a");
}

TEST_CASE("a plan leaves the model as it was") {
  const Sequential model({Dense(3, {.activity_regularizer = "l2", .name = "hidden"})});
  model.build({-1, 2});
  peak_of(model, {5, 2});
  CHECK(model->losses().empty());
  CHECK(model.weights().size() == 2);
  CHECK(model(pack(at::ones({1, 2}), Layout::replicated(default_mesh(), 2))).shape() ==
        Shape{1, 3});
}

}  // namespace activation_peak_test
