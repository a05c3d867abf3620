#include <cstdio>

#include <ATen/ops/arange.h>
#include <ATen/ops/mm.h>

#include <tessera/tessera.hpp>

using namespace tessera;

int main() {
  const at::Tensor row = at::arange(4.0).reshape({1, 4});
  const double product = at::mm(row, row.t()).item<double>();

  // Over Gloo: two processes show that Gloo and libtorch work in one program.
  const Mesh mesh = create_distributed_mesh({{"batch", 2}, {"model", 2}}, {.shared_memory = false});
  LayoutMap layouts(mesh);
  layouts["hidden/kernel"] = {unsharded, "model"};
  Sequential model({Flatten(), Dense(32, {.activation = "relu", .name = "hidden"}),
                    Dense(10, {.name = "logits"})});
  model.compile({.optimizer = Adam(1e-2),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"},
                 .layouts = layouts});
  const History history =
      model.fit(datasets::mnist({.size = 256}), {.batch_size = 64, .epochs = 3, .verbose = 0});
  const std::vector<double>& loss = history.at("loss");
  std::printf("product %g, loss %.3f\n", product, loss.back());
  return product == 14 && loss.back() < loss.front() ? 0 : 1;
}
