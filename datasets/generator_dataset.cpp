#include <tessera/datasets/generator_dataset.hpp>

#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

namespace tessera {

using namespace detail;

GeneratorDataset::GeneratorDataset(std::function<BatchFunction()> start,
                                   GeneratorDatasetOptions options)
    : start_(std::move(start)), options_(std::move(options)) {
  if (!start_) {
    throw ConfigError(options_.name, "a function starts the batches of an epoch", "none",
                      "pass one that returns a function of batches");
  }
  if (options_.steps && *options_.steps < 1) {
    throw ConfigError(options_.name, "steps is at least 1", str(*options_.steps),
                      "leave it out if it is not known");
  }
}

std::vector<Shape> GeneratorDataset::input_shapes() const {
  const BatchFunction next = start_();
  const std::optional<Examples> first = next ? next() : std::nullopt;
  if (!first) {
    throw ConfigError(options_.name, "an epoch has batches", "none", "return one at least");
  }
  std::vector<Shape> shapes;
  for (const at::Tensor& x : first->x) {
    if (!x.defined() || x.dim() == 0) {
      throw ShapeError(options_.name + ", x", "axis 0 of a batch's tensor counts the rows",
                       x.defined() ? "shape ()" : "undefined", "give it an axis of rows");
    }
    shapes.emplace_back(x.sizes().begin() + 1, x.sizes().end());
  }
  return shapes;
}

}  // namespace tessera
