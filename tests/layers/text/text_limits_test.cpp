#include <malloc.h>

#include <algorithm>
#include <thread>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/layers/text/text_vectorization.hpp>

#include "tests/support/catch.hpp"

namespace text_limits_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a token of 100 MB", "[nightly]") {
  const TextVectorization layer({.output_mode = "count"});
  const std::string long_token(100'000'000, 'x');
  layer.adapt(Texts{long_token, "a", "a"});
  CHECK(layer.vocabulary_size() == 3);
  CHECK(layer(Texts{long_token, long_token + "y"})
            .equal(at::tensor({0.f, 0.f, 1.f, 1.f, 0.f, 0.f}).view({2, 3})));
}

TEST_CASE("a million texts without words") {
  const TextVectorization layer({.output_mode = "count"});
  Texts empty(1'000'000);
  empty[777'777] = "a";
  layer.adapt(empty);
  CHECK(layer.get_vocabulary() == Texts{"[UNK]", "a"});
  CHECK(layer(empty).sum().item<double>() == 1);
}

TEST_CASE("a pass over a corpus keeps tokens in memory, not texts") {
  const auto held = [] {
    const auto usage = mallinfo2();
    return usage.uordblks + usage.hblkhd;
  };
  const std::string text = [] {
    std::string words;
    for (int i = 0; i < 20'000; ++i) words += str("w", i % 100, " ");
    return words;
  }();
  const TextVectorization layer({.output_mode = "count"});
  const size_t before = held();
  size_t peak = 0;
  int64_t left = 400;
  layer.adapt(TextStream([&]() -> std::optional<Texts> {
    peak = std::max(peak, held());
    if (left-- == 0) return std::nullopt;
    return Texts(4, text);
  }));
  CHECK(layer.vocabulary_size() == 101);
  CHECK(peak < before + 4'000'000);
  const Texts texts(400, text);
  peak = 0;
  const size_t with_texts = held();
  const auto data =
      layer.dataset(texts, {.progress = [&](int64_t, int64_t) { peak = std::max(peak, held()); }});
  // The texts have 30 MB; their rows have 100 columns of 8 bytes.
  CHECK(peak < with_texts + text.size() * texts.size() + 4'000'000);
  CHECK(data->size() == 400);
  CHECK(held() < with_texts + 4'000'000);
}

TEST_CASE("several threads may transform at once") {
  Texts texts;
  for (int i = 0; i < 200; ++i) texts.push_back(str("w", i % 7, " w", i % 3, " w", i % 3));
  const TextVectorization layer({.output_mode = "tf_idf"});
  layer.adapt(texts);
  const at::Tensor expected = layer(texts);
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) count += !layer(texts).equal(expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
}

}  // namespace text_limits_test
