// Keras' example "Text classification from scratch": the texts of a folder per class become token
// ids, and a network of two convolutions classifies them.

#include <algorithm>
#include <cctype>
#include <string_view>

#include <tessera/framework/base/error.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/data_program.hpp"
#include "apps/common/run_app.hpp"
#include "apps/common/sample_data.hpp"

namespace {

using namespace tessera;

/// Returns the text in lower case, with HTML line breaks as blanks and without punctuation.
std::string cleaned(std::string_view text) {
  constexpr std::string_view line_break = "<br />";
  std::string lower(text), clean;
  std::transform(text.begin(), text.end(), lower.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  for (size_t i = 0; i < lower.size(); ++i) {
    if (lower.compare(i, line_break.size(), line_break) == 0) {
      clean += ' ';
      i += line_break.size() - 1;
    } else if (!std::ispunct(static_cast<unsigned char>(lower[i]))) {
      clean += lower[i];
    }
  }
  return clean;
}

Sequential network(int64_t vocabulary, int64_t length, int64_t width, double dropout) {
  const ConvOptions convolution{.strides = 3, .padding = "valid", .activation = "relu"};
  return Sequential({Input({length}, {.dtype = "int64"}), Embedding(vocabulary, width),
                     Dropout(dropout), Conv1D(width, 7, convolution), Conv1D(width, 7, convolution),
                     GlobalMaxPooling1D(), Dense(width, {.activation = "relu"}), Dropout(dropout),
                     Dense(1, {.activation = "sigmoid", .name = "predictions"})});
}

int run(int argc, char** argv) {
  app::DataProgram program("text_classification",
                           "Classifies texts into two classes, like Keras' example \"Text "
                           "classification from scratch\".",
                           "a folder with a folder of .txt files for each of two classes",
                           app::sample_reviews);
  program.common().batch_size = 32;
  program.common().epochs = 3;
  int64_t vocabulary = 20000, length = 500, width = 128;
  program.options().add(
      {"vocabulary", "Model", "maximum size of the vocabulary", app::integer(vocabulary, 3)});
  program.options().add(
      {"length", "Model", "number of words read of each text", app::integer(length, 25)});
  program.options().add({"width", "Model", "features of an embedding and of each hidden layer",
                         app::integer(width, 1)});
  const std::optional<app::Setup> setup = program.start(argc, argv);
  if (!setup) return 0;

  const auto [training, validation] = datasets::text_subsets_from_directory(
      program.data(), {.seed = uint32_t(program.common().seed), .validation_split = 0.2});
  if (training->class_names().size() != 2) {
    throw ConfigError("--data", "a folder for each of two classes",
                      std::to_string(training->class_names().size()) + " folders",
                      "choose two of them");
  }
  const TextVectorization vectorize(
      {.max_tokens = vocabulary, .standardize = cleaned, .output_sequence_length = length});
  vectorize.adapt(training);

  const Sequential model = network(vocabulary, length, width, program.dropout);
  model.compile({.optimizer = Adam(program.learning_rate(1e-3)),
                 .loss = "binary_crossentropy",
                 .metrics = {"accuracy"},
                 .layouts = setup->layouts});
  return program.train(model, vectorize.dataset(training), vectorize.dataset(validation));
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, run); }
