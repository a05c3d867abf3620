// A first model of handwritten digits, trained on eight devices, evaluated and saved. The devices
// are virtual, so it runs anywhere, and results do not depend on how many there are.

#include <cstdio>

#include <tessera/tessera.hpp>

using namespace tessera;

int main() {
  // A grid of devices: batches are sharded over "batch", weights over "model".
  Mesh mesh = create_mesh({{"batch", 4}, {"model", 2}}, virtual_cpus(8));
  LayoutMap layouts(mesh);
  layouts["hidden/kernel"] = {unsharded, "model"};  // columns over two devices
  layouts["logits/kernel"] = {"model", unsharded};  // rows over the same two

  auto train = datasets::mnist({.split = "train", .size = 5000});
  auto test = datasets::mnist({.split = "test", .size = 5000});

  // The model is written as if for one device.
  Sequential model({
      Flatten(),
      Dense(700, {.activation = "relu", .name = "hidden"}),
      Dense(10, {.name = "logits"}),
  });
  model.compile({.optimizer = Adam(1e-3),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"},
                 .layouts = layouts});
  model.fit(train, {.batch_size = 128, .epochs = 3, .validation_data = test});
  model.summary({.show_layout = true});

  Logs scores = model.evaluate(test, {.batch_size = 128, .verbose = 0});
  for (const auto& [name, value] : scores) std::printf("test %s: %.4f\n", name.c_str(), value);
  model.save_weights("digits.safetensors");  // any mesh reads it, or none
}
