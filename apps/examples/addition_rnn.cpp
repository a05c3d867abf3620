// Keras' example "Sequence to sequence learning for performing number addition": an LSTM reads
// "12+34" as characters, another one writes "46 ".

#include <string>
#include <string_view>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/tessera.hpp>

#include "apps/common/example.hpp"
#include "apps/common/formula.hpp"

namespace {

using namespace tessera;

constexpr int64_t question_length = 5, answer_length = 3;
constexpr std::string_view characters = "0123456789+ ";
constexpr auto kinds = static_cast<int64_t>(characters.size());

/// Appends the characters of a text, filled up with blanks, as indices.
void append(std::vector<int64_t>& indices, std::string text, int64_t length, bool reversed) {
  text.resize(static_cast<size_t>(length), ' ');
  if (reversed) text = std::string(text.rbegin(), text.rend());
  for (const char character : text) {
    indices.push_back(static_cast<int64_t>(characters.find(character)));
  }
}

at::Tensor one_hot(const std::vector<int64_t>& indices, int64_t length) {
  return at::one_hot(at::tensor(indices, at::kLong).reshape({-1, length}), kinds).to(at::kFloat);
}

/// Questions, read from their end as in Keras' example, and their answers.
Examples make_sums(int64_t rows) {
  const at::Tensor numbers = app::hashed_integers({2, rows}, /*seed=*/1, 100).contiguous();
  const int64_t* const first = numbers.const_data_ptr<int64_t>();
  std::vector<int64_t> questions, answers;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t a = first[row], b = first[rows + row];
    append(questions, std::to_string(a) + "+" + std::to_string(b), question_length, true);
    append(answers, std::to_string(a + b), answer_length, false);
  }
  return {.x = {one_hot(questions, question_length)}, .y = {one_hot(answers, answer_length)}};
}

History train(const app::Example& example) {
  const Sequential model({Input({question_length, kinds}), LSTM(64), RepeatVector(answer_length),
                          LSTM(64, {.return_sequences = true}),
                          TimeDistributed(Dense(kinds, {.activation = "softmax"}))});
  app::set_hashed_weights(model);
  model.compile({.optimizer = "adam",
                 .loss = "categorical_crossentropy",
                 .metrics = {"accuracy"},
                 .layouts = example.layouts});
  return model.fit(make_sums(1280), example.fit);
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::app::run_example(
      argc, argv,
      {.name = "addition_rnn", .description = "Learns to add numbers that are written in digits."},
      train);
}
