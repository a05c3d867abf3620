#include <cstdio>

#include <tessera/tessera.hpp>

using namespace tessera;

int main() {
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
  const at::Tensor logits = model.predict(datasets::mnist({.size = 64}));
  const at::Tensor row = logits.new_ones({1, 4}).cumsum(1).sub(1);
  const double product = row.mm(row.t()).item<double>();
  std::printf("product %g, loss %.3f\n", product, loss.back());
  return product == 14 && loss.back() < loss.front() ? 0 : 1;
}
