// Keras' example "Image segmentation with a U-Net-like architecture": the way down finds what is in
// a picture, the way up says where, with the help of the fine features from the way down.

#include <ATen/ATen.h>

#include <tessera/tessera.hpp>

#include "apps/common/example.hpp"
#include "apps/common/formula.hpp"

namespace {

using namespace tessera;

SymbolicTensor convolutions(const SymbolicTensor& x, int64_t filters) {
  const ConvOptions options{.padding = "same", .activation = "relu"};
  return Conv2D(filters, 3, options)(Conv2D(filters, 3, options)(x));
}

Functional make_unet(int64_t size, int64_t classes) {
  Input picture({size, size, 1});
  const auto fine = convolutions(picture, 8);
  const auto coarse = convolutions(MaxPooling2D()(fine), 16);
  auto x = convolutions(MaxPooling2D()(coarse), 32);
  x = Conv2DTranspose(16, 3, {.strides = 2, .padding = "same"})(x);
  x = convolutions(Concatenate()({x, coarse}), 16);
  x = Conv2DTranspose(8, 3, {.strides = 2, .padding = "same"})(x);
  x = convolutions(Concatenate()({x, fine}), 8);
  const auto scores = Conv2D(classes, 1, {.activation = "softmax"})(x);
  return Functional({picture}, {scores}, {.name = "unet"});
}

History train(const app::Example& example) {
  // Class 1 and, in front of it, class 2 on background 0, brighter in this order under noise.
  const at::Tensor front = app::hashed_rectangles(320, 32, /*seed=*/1);
  const at::Tensor behind = app::hashed_rectangles(320, 32, /*seed=*/3);
  const at::Tensor classes = at::where(front.gt(0), at::full_like(front, 2), behind);
  const at::Tensor noise = app::hashed_numbers({320, 32, 32, 1}, /*seed=*/5);
  const at::Tensor pictures = classes * 0.25 + noise * 0.5;
  const at::Tensor labels = classes.squeeze(3).to(at::kLong);

  const Functional unet = make_unet(32, 3);
  app::set_hashed_weights(unet);
  unet.compile({.optimizer = Adam(1e-4),
                .loss = "sparse_categorical_crossentropy",
                .metrics = {"accuracy", MeanIoU(3, {.name = "mean_iou", .sparse_y_pred = false})},
                .layouts = example.layouts});
  return unet.fit(pictures, labels, example.fit);
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::app::run_example(
      argc, argv,
      {.name = "unet",
       .description = "Finds the rectangle that each pixel of a picture is in.",
       .batch_size = 16},
      train);
}
