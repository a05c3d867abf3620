// Keras' example "Convolutional autoencoder for image denoising": convolutions make a picture
// smaller, transposed ones make it large again, and the noise does not come back.

#include <ATen/ATen.h>

#include <tessera/tessera.hpp>

#include "apps/common/example.hpp"
#include "apps/common/formula.hpp"

namespace {

using namespace tessera;

Functional make_autoencoder() {
  Input picture({28, 28, 1});
  // Encoder
  auto x = Conv2D(32, 3, {.padding = "same", .activation = "relu"})(picture);
  x = MaxPooling2D(2, {.padding = "same"})(x);
  x = Conv2D(32, 3, {.padding = "same", .activation = "relu"})(x);
  x = MaxPooling2D(2, {.padding = "same"})(x);
  // Decoder
  x = Conv2DTranspose(32, 3, {.strides = 2, .padding = "same", .activation = "relu"})(x);
  x = Conv2DTranspose(32, 3, {.strides = 2, .padding = "same", .activation = "relu"})(x);
  x = Conv2D(1, 3, {.padding = "same", .activation = "sigmoid"})(x);
  return Functional({picture}, {x}, {.name = "autoencoder"});
}

History train(const app::Example& example) {
  const at::Tensor clean = app::hashed_rectangles(640, 28, /*seed=*/1);
  const at::Tensor noise = app::hashed_numbers({640, 28, 28, 1}, /*seed=*/3);
  const at::Tensor noisy = clean * 0.5 + noise * 0.5;

  const Functional autoencoder = make_autoencoder();
  app::set_hashed_weights(autoencoder);
  autoencoder.compile(
      {.optimizer = Adam(1e-4), .loss = "binary_crossentropy", .layouts = example.layouts});
  return autoencoder.fit(noisy, clean, example.fit);
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::app::run_example(
      argc, argv,
      {.name = "autoencoder", .description = "Removes noise from pictures of rectangles."}, train);
}
