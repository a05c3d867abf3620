// Keras' example "Image classification from scratch": a folder of pictures per class, random flips
// and rotations, and a small Xception that classifies pictures into two classes.

#include <tessera/framework/base/error.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/data_program.hpp"
#include "apps/common/run_app.hpp"
#include "apps/common/sample_data.hpp"

namespace {

using namespace tessera;

SymbolicTensor normalized(const SymbolicTensor& x) { return BatchNormalization()(x); }
SymbolicTensor relu(const SymbolicTensor& x) { return Activation("relu")(x); }

/// Makes the example's network, with a residual block of each width but the first and the last.
Functional network(int64_t size, const std::vector<int64_t>& widths, double dropout) {
  const Input picture({size, size, 3});
  SymbolicTensor x = Rescaling(1.0 / 255)(picture);
  x = relu(normalized(Conv2D(widths.front(), 3, {.strides = 2, .padding = "same"})(x)));
  SymbolicTensor previous = x;
  for (size_t i = 1; i + 1 < widths.size(); ++i) {
    for (int half = 0; half < 2; ++half) {
      x = normalized(SeparableConv2D(widths[i], 3, {.padding = "same"})(relu(x)));
    }
    x = MaxPooling2D(3, {.strides = 2, .padding = "same"})(x);
    const SymbolicTensor residual =
        Conv2D(widths[i], 1, {.strides = 2, .padding = "same"})(previous);
    x = Add()({x, residual});
    previous = x;
  }
  x = relu(normalized(SeparableConv2D(widths.back(), 3, {.padding = "same"})(x)));
  x = Dropout(dropout)(GlobalAveragePooling2D()(x));
  return Functional({picture}, {Dense(1, {.activation = "sigmoid"})(x)});
}

/// Flips and rotates pictures at random, each by its own seed, on two threads.
DataPipeline augmented(const DataPipeline& rows) {
  const Pipeline augment({RandomFlip("horizontal"), RandomRotation(0.1)});
  const auto change = [augment](Examples row, Seed seed) {
    row.x[0] = augment(row.x[0], seed);
    return row;
  };
  return rows.map(change, {.threads = 2});
}

int run(int argc, char** argv) {
  app::DataProgram program("image_classification",
                           "Classifies pictures into two classes, like Keras' example \"Image "
                           "classification from scratch\".",
                           "a folder with a folder of pictures for each of two classes",
                           app::sample_stripes);
  program.common().batch_size = 32;
  program.common().epochs = 25;
  program.dropout = 0.25;
  int64_t size = 64;
  std::vector<int64_t> widths{16, 32, 64, 96, 128};
  bool augment = true;
  program.options().add(
      {"size", "Model", "height and width that pictures are resized to", app::integer(size, 8)});
  program.options().add({"widths", "Model",
                         "channels of each block; the example has "
                         "128,256,512,728,1024",
                         app::integers(widths, 1)});
  program.options().add(
      {"augment", "Training", "flip and rotate pictures at random", app::toggle(augment)});
  const std::optional<app::Setup> setup = program.start(argc, argv);
  if (!setup) return 0;
  const app::CommonOptions& common = program.common();

  const auto [pictures, held_pictures] =
      datasets::image_subsets_from_directory(program.data(), {.label_mode = "binary",
                                                              .image_size = {size, size},
                                                              .seed = uint32_t(common.seed),
                                                              .validation_split = 0.2});
  DataPipeline training = DataPipeline(pictures).cache();
  if (common.shuffle) training = training.shuffle();
  if (augment) training = augmented(training);

  const Functional model = network(size, widths, program.dropout);
  model.compile({.optimizer = Adam(program.learning_rate(3e-4)),
                 .loss = BinaryCrossentropy(),
                 .metrics = {BinaryAccuracy({.name = "acc"})},
                 .layouts = setup->layouts});
  return program.train(model, training.batch(common.batch_size),
                       DataPipeline(held_pictures).cache().batch(common.batch_size));
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, run); }
