#include <tessera/framework/generation/generate.hpp>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/generation/internal/token_decoder.hpp>
#include <tessera/framework/generation/internal/token_sampler.hpp>
#include <tessera/framework/model/functional.hpp>
#include <tessera/framework/model/sequential.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/seed_scope.hpp"

namespace generate_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

constexpr int64_t vocabulary = 23, width = 12;

TransformerBlockOptions gpt_block() {
  return {.num_heads = 2, .hidden_dim = 16, .use_causal_mask = true};
}

TransformerBlockOptions llama_block() {
  return {.num_heads = 4,
          .hidden_dim = 16,
          .num_key_value_heads = 2,
          .head_dim = 4,
          .norm = BlockNorm::rms,
          .activation = "silu",
          .gated = true,
          .use_bias = false,
          .rotary = ops::RotaryOptions{},
          .use_causal_mask = true};
}

/// The blocks that are tested, and whether positions are learned.
std::map<std::string, std::pair<TransformerBlockOptions, bool>> families() {
  TransformerBlockOptions mistral = llama_block(), gemma = llama_block(), gpt = gpt_block();
  mistral.sliding_window = 3;
  gemma.norm_position = NormPosition::both;
  gemma.attention_soft_cap = 5;
  gemma.sliding_window = 4;
  gpt.norm_position = NormPosition::post;
  return {{"gpt", {gpt, true}},
          {"gpt2", {gpt_block(), true}},
          {"llama", {llama_block(), false}},
          {"mistral", {mistral, false}},
          {"gemma", {gemma, false}}};
}

/// Makes a language model of two blocks, whose logits are far apart.
Functional language_model(const TransformerBlockOptions& block, bool learned,
                          const LayoutMap& layouts, int64_t tokens = vocabulary,
                          int64_t length = 64) {
  const test::SeedScope seed(5);
  const InitializerHandle wide = RandomNormal({.stddev = 0.8});
  const Input ids({-1}, {.dtype = "int64", .name = "ids"});
  SymbolicTensor x = Embedding(
      tokens, width, {.embeddings_initializer = wide, .name = "tokens"})(SymbolicTensor(ids));
  if (learned) {
    x = PositionEmbedding(length, {.initializer = wide, .add = true, .name = "positions"})(x);
  }
  for (const char* name : {"block_1", "block_2"}) {
    TransformerBlockOptions options = block;
    options.name = name;
    x = TransformerBlock(options)(x);
  }
  const Functional model({ids}, {Dense(tokens, {.kernel_initializer = wide, .name = "logits"})(x)},
                         {.name = "lm"});
  model.compile({.layouts = layouts});
  return model;
}

LayoutMap one_device() { return LayoutMap(create_mesh({{"batch", 1}})); }

/// Returns the logits behind tokens by a call on all of them.
at::Tensor logits_behind(const ModelHandle& model, const TokenIds& tokens) {
  const at::Tensor row = at::tensor(tokens).unsqueeze(0);
  return model(pack(row, Layout::replicated(model->weights()[0].layout().mesh(), 2))).full()[0][-1];
}

/// Continues a text token by token, by calls on the last `context` tokens.
TokenIds greedy_by_hand(const ModelHandle& model, TokenIds tokens, int64_t count,
                        int64_t context = 1000) {
  TokenIds added;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t seen = std::min(context, std::ssize(tokens));
    added.push_back(
        logits_behind(model, TokenIds(tokens.end() - seen, tokens.end())).argmax().item<int64_t>());
    tokens.push_back(added.back());
  }
  return added;
}

/// A model that calls its layers itself.
class Subclassed final : public Model {
 public:
  Subclassed()
      : tokens_(track(Embedding(vocabulary, width))),
        attention_(track(GroupQueryAttention(4, 4, 2, {.use_causal_mask = true}))),
        logits_(track(Dense(vocabulary))) {}
  std::string class_name() const override { return "Subclassed"; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    const DTensor x = tokens_(inputs[0], context);
    return logits_(ops::add(x, attention_(Inputs{x, x}, context)), context);
  }

 private:
  LayerHandle tokens_, attention_, logits_;
};

const std::vector<TokenIds> prompts = {{5, 8, 7}, {2}, {1, 1, 20, 4, 9, 3, 11}};

std::vector<TokenIds> tokens_of(const std::vector<GeneratedTokens>& texts) {
  std::vector<TokenIds> all;
  for (const GeneratedTokens& text : texts) all.push_back(text.tokens);
  return all;
}

}  // namespace

TEST_CASE("logits with a cache equal those without one, at any number of tokens") {
  const test::DTypeScope doubles("float64");
  for (const auto& [name, family] : families()) {
    CAPTURE(name);
    const Functional model = language_model(family.first, family.second, one_device());
    TokenDecoder decoder(model, prompts, {.max_new_tokens = 9});
    for (int64_t step = 0; step < 9; ++step) {
      const at::Tensor cached = decoder.next_logits();
      for (int64_t row = 0; row < 3; ++row) {
        const at::Tensor alone = logits_behind(model, decoder.rows()[size_t(row)]);
        CHECK(test::difference(cached[row], alone, 1e-12, 1e-12) == "");
        decoder.append(row, (step * 7 + row) % vocabulary);
      }
    }
  }
}

TEST_CASE("generated texts are those of a loop by hand, whatever the model's class") {
  const test::DTypeScope doubles("float64");
  const test::SeedScope seed(7);
  const Sequential sequential({Embedding(vocabulary, width), PositionEmbedding(32, {.add = true}),
                               TransformerBlock(gpt_block()), Dense(vocabulary)});
  const ModelHandle subclassed(std::make_shared<Subclassed>());
  const Functional functional = language_model(llama_block(), false, one_device());
  for (const ModelHandle& model : std::vector<ModelHandle>{functional, sequential, subclassed}) {
    CAPTURE(model->class_name());
    const std::vector<GeneratedTokens> texts = generate(model, prompts, {.max_new_tokens = 11});
    REQUIRE(texts.size() == 3);
    for (size_t i = 0; i < 3; ++i) {
      CHECK(texts[i].tokens == greedy_by_hand(model, prompts[i], 11));
      CHECK_FALSE(texts[i].stopped);
      // Each text alone.
      CHECK(generate(model, {prompts[i]}, {.max_new_tokens = 11})[0].tokens == texts[i].tokens);
    }
    TokenIds all = prompts[0];
    double sum = 0;
    for (size_t t = 0; t < 11; ++t) {
      const double expected =
          logits_behind(model, all).log_softmax(0)[texts[0].tokens[t]].item<double>();
      CHECK(texts[0].log_probabilities[t] == Approx(expected).epsilon(1e-10));
      sum += expected;
      all.push_back(texts[0].tokens[t]);
    }
    CHECK(texts[0].score == Approx(sum).epsilon(1e-10));
  }
}

TEST_CASE("tokens are drawn from the top-k and top-p of the tempered probabilities") {
  std::vector<double> logits;
  for (const double p : {0.15, 0.5, 0.05, 0.3}) logits.push_back(std::log(p) + 7);
  using Chances = std::vector<std::pair<int64_t, double>>;
  const auto check = [&](const GenerateOptions& options, const Chances& expected) {
    const std::vector<TokenChance> chances = token_chances(logits, options);
    REQUIRE(chances.size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      CHECK(chances[i].token == expected[i].first);
      CHECK(chances[i].probability == Approx(expected[i].second).epsilon(1e-12));
    }
  };
  check({}, {{1, 1}});
  check({.temperature = 1}, {{1, 0.5}, {3, 0.3}, {0, 0.15}, {2, 0.05}});
  check({.top_k = 2}, {{1, 0.625}, {3, 0.375}});
  check({.top_k = 1}, {{1, 1}});
  check({.top_k = 9, .top_p = 1}, {{1, 0.5}, {3, 0.3}, {0, 0.15}, {2, 0.05}});
  check({.top_p = 0.49}, {{1, 1}});
  check({.top_p = 0.6}, {{1, 0.625}, {3, 0.375}});
  check({.top_p = 0.81}, {{1, 0.5 / 0.95}, {3, 0.3 / 0.95}, {0, 0.15 / 0.95}});
  // Squares of the probabilities.
  check({.temperature = 0.5, .top_k = 2}, {{1, 0.25 / 0.34}, {3, 0.09 / 0.34}});
  // Of the top 3, the first two have 0.8 / 0.95 = 0.842.
  check({.top_k = 3, .top_p = 0.83}, {{1, 0.625}, {3, 0.375}});
  // Tokens beyond the first few hundred.
  const std::vector<double> flat(1000, 0.5);
  const std::vector<TokenChance> most = token_chances(flat, {.top_p = 0.7999});
  REQUIRE(most.size() == 800);
  for (size_t i = 0; i < most.size(); ++i) {
    CHECK(most[i].token == int64_t(i));
    CHECK(most[i].probability == Approx(1.0 / 800).epsilon(1e-12));
  }
  // Of equal tokens, lower ids come first.
  logits = {1, 3, 3, 0, 3};
  check({}, {{1, 1}});
  check({.top_k = 2}, {{1, 0.5}, {2, 0.5}});

  const std::vector<TokenChance> chances = {{4, 0.5}, {2, 0.25}, {9, 0.25}};
  CHECK(drawn_token(chances, 0) == 4);
  CHECK(drawn_token(chances, 0.49) == 4);
  CHECK(drawn_token(chances, 0.5) == 2);
  CHECK(drawn_token(chances, 0.75) == 9);
  CHECK(drawn_token(chances, 1) == 9);
  std::map<int64_t, int64_t> counts;
  constexpr int64_t draws = 20000;
  for (int64_t i = 0; i < draws; ++i) ++counts[drawn_token(chances, token_draw(3, 1, i))];
  for (const TokenChance& each : chances) {
    // Four standard deviations.
    const double deviation = 4 * std::sqrt(each.probability * (1 - each.probability) / draws);
    CHECK(double(counts[each.token]) / draws == Approx(each.probability).margin(deviation));
  }
  const std::set<double> different = {token_draw(3, 1, 0), token_draw(4, 1, 0), token_draw(3, 2, 0),
                                      token_draw(3, 1, 1)};
  CHECK(different.size() == 4);
}

TEST_CASE("drawn texts depend on seed, text number and position") {
  const test::DTypeScope doubles("float64");
  const Functional model = language_model(gpt_block(), true, one_device());
  const GenerateOptions options{.max_new_tokens = 12, .temperature = 3, .seed = 4};
  const std::vector<TokenIds> two = tokens_of(generate(model, {{5, 8}, {5, 8}}, options));
  CHECK(two[0] != two[1]);
  CHECK(tokens_of(generate(model, {{5, 8}, {5, 8}}, options)) == two);
  CHECK(generate(model, {{5, 8}}, options)[0].tokens == two[0]);
  GenerateOptions other = options;
  other.seed = 5;
  CHECK(generate(model, {{5, 8}}, other)[0].tokens != two[0]);
  // A loop by hand.
  TokenIds all = {5, 8};
  for (int64_t position = 0; position < 12; ++position) {
    const at::Tensor row = logits_behind(model, all).contiguous();
    const std::span<const double> logits(row.const_data_ptr<double>(), size_t(row.numel()));
    all.push_back(drawn_token(token_chances(logits, options), token_draw(4, 0, position)));
  }
  CHECK(TokenIds(all.begin() + 2, all.end()) == two[0]);
}

TEST_CASE("a beam search that is wide enough finds the best of all texts") {
  const test::DTypeScope doubles("float64");
  constexpr int64_t tokens = 4, length = 3, stop = 2;
  const Functional model = language_model(gpt_block(), true, one_device(), tokens);
  for (const double penalty : {1.0, 0.0, 2.0, -1.0}) {
    CAPTURE(penalty);
    for (const TokenIds& prompt : std::vector<TokenIds>{{1, 3}, {0}}) {
      TokenIds best;
      double best_score = -1e9;
      const std::function<void(const TokenIds&, double)> visit = [&](const TokenIds& added,
                                                                     double sum) {
        if (!added.empty() && (added.back() == stop || std::ssize(added) == length)) {
          const double score = sum / std::pow(double(added.size()), penalty);
          if (score > best_score) {
            best = added;
            best_score = score;
          }
          return;
        }
        TokenIds all = prompt;
        all.insert(all.end(), added.begin(), added.end());
        const at::Tensor logs = logits_behind(model, all).log_softmax(0);
        for (int64_t token = 0; token < tokens; ++token) {
          TokenIds more = added;
          more.push_back(token);
          visit(more, sum + logs[token].item<double>());
        }
      };
      visit({}, 0);
      const GeneratedTokens found = generate(model, {prompt},
                                             {.max_new_tokens = length,
                                              .num_beams = 40,
                                              .length_penalty = penalty,
                                              .stop_tokens = {stop}})[0];
      CHECK(found.tokens == best);
      CHECK(found.score == Approx(best_score).epsilon(1e-10));
      CHECK(found.stopped == (best.back() == stop));
    }
  }
}

TEST_CASE("a narrow beam search is the same for several texts and for each alone") {
  const test::DTypeScope doubles("float64");
  const Functional model = language_model(llama_block(), false, one_device());
  GenerateOptions options{.max_new_tokens = 8, .num_beams = 3, .stop_tokens = {4, 9}};
  for (const bool early : {false, true}) {
    options.early_stopping = early;
    const std::vector<TokenIds> together = tokens_of(generate(model, prompts, options));
    for (size_t i = 0; i < prompts.size(); ++i) {
      CAPTURE(early, i);
      CHECK(generate(model, {prompts[i]}, options)[0].tokens == together[i]);
    }
  }
  // The score of one beam without a penalty is the sum of its logarithms, and no beams are greedy.
  options = {.max_new_tokens = 6, .num_beams = 2, .length_penalty = 0};
  const GeneratedTokens two = generate(model, {prompts[0]}, options)[0];
  double sum = 0;
  for (const double each : two.log_probabilities) sum += each;
  CHECK(two.score == Approx(sum).epsilon(1e-12));
  CHECK(two.tokens.size() == 6);
}

TEST_CASE("texts end at stop tokens, at what `stop` says and at max_new_tokens, each by itself") {
  const test::DTypeScope doubles("float64");
  const Functional model = language_model(gpt_block(), true, one_device());
  const std::vector<TokenIds> free = tokens_of(generate(model, prompts, {.max_new_tokens = 10}));
  const int64_t stop = free[0][4];
  std::vector<std::pair<int64_t, int64_t>> seen;
  const std::vector<GeneratedTokens> texts = generate(
      model, prompts,
      {.max_new_tokens = 10, .stop_tokens = {stop}, .on_token = [&](int64_t text, int64_t token) {
         seen.emplace_back(text, token);
       }});
  size_t count = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto end = std::find(free[i].begin(), free[i].end(), stop);
    const bool stopped = end != free[i].end();
    CHECK(texts[i].tokens == TokenIds(free[i].begin(), stopped ? end + 1 : end));
    CHECK(texts[i].stopped == stopped);
    count += texts[i].tokens.size();
  }
  CHECK(texts[0].stopped);
  REQUIRE(seen.size() == count);
  CHECK(seen[0] == std::pair<int64_t, int64_t>(0, free[0][0]));
  CHECK(seen[1] == std::pair<int64_t, int64_t>(1, free[1][0]));
  const auto two = [](std::span<const int64_t> added) { return added.size() == 2; };
  for (const GeneratedTokens& text :
       generate(model, prompts, {.max_new_tokens = 10, .stop = two})) {
    CHECK(text.tokens.size() == 2);
    CHECK(text.stopped);
  }
  Continuation texts_by_steps(model, prompts, {.max_new_tokens = 2});
  texts_by_steps.step();
  CHECK(texts_by_steps.texts()[2].tokens == TokenIds{free[2][0]});
  CHECK_FALSE(texts_by_steps.complete());
  texts_by_steps.step();
  CHECK(texts_by_steps.complete());
  CHECK_THAT(test::error_line([&] { texts_by_steps.step(); }), Contains("[Continuation]"));
}

TEST_CASE("texts are the same on every mesh") {
  const test::DTypeScope doubles("float64");
  const std::vector<GenerateOptions> searches = {
      {.max_new_tokens = 9},
      {.max_new_tokens = 9, .temperature = 2, .top_k = 12, .top_p = 0.95, .seed = 3},
      {.max_new_tokens = 5, .num_beams = 3, .stop_tokens = {4, 9}}};
  for (const bool llama : {false, true}) {
    std::vector<std::set<std::vector<TokenIds>>> found(searches.size());
    for (const MeshDims& dims : std::vector<MeshDims>{
             {{"batch", 1}}, {{"batch", 2}}, {{"model", 2}}, {{"batch", 2}, {"model", 2}}}) {
      LayoutMap layouts(create_mesh(dims));
      if (dims.back().first == "model") {
        layouts[".*(query|key|value)/kernel"] = {unsharded, "model", unsharded};
        layouts[".*attention_output/kernel"] = {"model", unsharded, unsharded};
        layouts["block.*up/kernel"] = {unsharded, "model"};
        layouts["block.*down/kernel"] = {"model", unsharded};
        layouts["tokens/embeddings"] = {"model", unsharded};
        layouts["logits/kernel"] = {unsharded, "model"};
      }
      const Functional model = language_model(llama ? llama_block() : gpt_block(), !llama, layouts);
      for (size_t i = 0; i < searches.size(); ++i) {
        found[i].insert(tokens_of(generate(model, prompts, searches[i])));
      }
    }
    for (size_t i = 0; i < searches.size(); ++i) {
      CAPTURE(llama, i);
      CHECK(found[i].size() == 1);
    }
  }
}

TEST_CASE("no token makes new plans, nor does another prompt of known powers of two") {
  const Functional model = language_model(llama_block(), false, one_device());
  GenerateOptions options{.max_new_tokens = 30, .check_model = false};
  Continuation text(model, {{5, 8, 7}}, options);
  for (int step = 0; step < 3; ++step) text.step();
  const int64_t made = plan_stats().made;
  while (!text.complete()) text.step();
  CHECK(plan_stats().made == made);
  // The capacity of the cache is 32 for all of these.
  const auto continue_prompt = [&](size_t length) {
    options.max_new_tokens = 33 - static_cast<int64_t>(length);
    generate(model, {TokenIds(length, 3)}, options);
  };
  for (const size_t length : {1, 2, 4}) continue_prompt(length);
  const int64_t with_four = plan_stats().made;
  CHECK(with_four > made);
  for (size_t length = 1; length < 8; ++length) continue_prompt(length);
  CHECK(plan_stats().made == with_four);
}

TEST_CASE("each further token replays one recording, in all texts of a compiled model") {
  const test::DTypeScope doubles("float64");
  for (const auto& [name, family] : families()) {
    CAPTURE(name);
    const Functional model = language_model(family.first, family.second, one_device());
    const auto check = [&](const std::vector<TokenIds>& from, int64_t eager, int64_t replayed) {
      Continuation texts(model, from, {.max_new_tokens = 12, .check_model = false});
      for (int step = 0; step < 3; ++step) texts.step();
      const int64_t made = plan_stats().made;
      while (!texts.complete()) texts.step();
      CHECK(plan_stats().made == made);
      for (size_t i = 0; i < from.size(); ++i) {
        CHECK(texts.texts()[i].tokens == greedy_by_hand(model, from[i], 12));
      }
      const StepRecords records = texts.step_records();
      CHECK(records.why == "");
      CHECK(records.recorded == 1);
      CHECK(records.eager == eager);
      CHECK(records.replayed == replayed);
    };
    // The longest prompt, of 7 tokens, is calls on 4, 2 and 1; then come 11 tokens. Of these twelve
    // calls on one token, the second is captured.
    check(prompts, 2, 10);
    const std::vector<TokenIds> others = {{3}, {4, 4, 4, 9, 2, 2}, {1, 2}};
    check(others, 2, 21);
    // The weights of a replay are those of now.
    std::vector<at::Tensor> weights = model.get_weights();
    for (at::Tensor& weight : weights) weight = weight * 1.25 - 0.125;
    model.set_weights(weights);
    check(others, 2, 32);
  }
}

TEST_CASE("texts continued in turn share a recording, each with a cache of its own") {
  const test::DTypeScope doubles("float64");
  const Functional model = language_model(llama_block(), false, one_device());
  const GenerateOptions options{.max_new_tokens = 12, .check_model = false};
  std::vector<Continuation> texts;
  for (const TokenIds& prompt : prompts)
    texts.emplace_back(model, std::vector<TokenIds>{prompt}, options);
  while (!texts[0].complete()) {
    for (Continuation& text : texts) text.step();
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    CHECK(texts[i].texts()[0].tokens == greedy_by_hand(model, prompts[i], 12));
  }
  // Prompts of 1 and 3 tokens have a cache of 16 steps, and the one of 7 has one of 32.
  CHECK(texts[0].step_records().recorded == 2);
}

TEST_CASE("a replayed token has the logits of an eager one, also in bfloat16") {
  const test::DTypeScope mixed("mixed_bfloat16");
  for (const char* const family : {"gpt2", "gemma"}) {
    CAPTURE(family);
    const auto [block, learned] = families().at(family);
    const Functional model = language_model(block, learned, one_device());
    const auto logits = [&](bool run_eagerly) {
      model.compile({.run_eagerly = run_eagerly, .layouts = one_device()});
      TokenDecoder decoder(model, prompts, {.max_new_tokens = 9});
      std::vector<at::Tensor> all;
      for (int64_t step = 0; step < 9; ++step) {
        all.push_back(decoder.next_logits());
        for (int64_t row = 0; row < 3; ++row) decoder.append(row, (step * 7 + row) % vocabulary);
      }
      const StepRecords records = decoder.records();
      CHECK((records.replayed > 0) == !run_eagerly);
      CHECK((records.hoisted > 0) == !run_eagerly);
      return at::stack(all);
    };
    CHECK(test::difference(logits(false), logits(true), 1e-2, 1e-2) == "");
  }
}

TEST_CASE("a call that cannot be recorded runs as code, and says why") {
  const test::DTypeScope doubles("float64");
  const test::SeedScope seed(7);
  const ModelHandle model(std::make_shared<Subclassed>());
  const auto records = [&] {
    Continuation text(model, {prompts[0]}, {.max_new_tokens = 8, .check_model = false});
    while (!text.complete()) text.step();
    CHECK(text.texts()[0].tokens == greedy_by_hand(model, prompts[0], 8));
    return text.step_records();
  };
  CHECK_THAT(records().why, Contains("Subclassed") && Contains("user-defined"));
  CHECK(records().replayed == 0);
  model.compile({.record_steps = true, .layouts = one_device()});
  CHECK(records().replayed == 6);
  {
    const GradientTape tape;
    CHECK(records().replayed == 6);
  }
  CHECK(records().replayed == 14);
}

TEST_CASE("a replay ends where learned positions end, with the layer's error") {
  const Functional model = language_model(gpt_block(), true, one_device(), vocabulary, 8);
  CHECK_THAT(test::error_line([&] {
               generate(model, {{5}, {6, 7}}, {.max_new_tokens = 12, .check_model = false});
             }),
             Contains("positions") && Contains("sequence_length = 8 steps. Received: 9"));
}

TEST_CASE("beyond max_context the model sees the last tokens only") {
  const test::DTypeScope doubles("float64");
  const Functional model = language_model(gpt_block(), true, one_device(), vocabulary, 8);
  const std::vector<GeneratedTokens> texts =
      generate(model, prompts, {.max_new_tokens = 12, .max_context = 8});
  for (size_t i = 0; i < prompts.size(); ++i) {
    CHECK(texts[i].tokens == greedy_by_hand(model, prompts[i], 12, 8));
  }
  CHECK(generate(model, {TokenIds(20, 3)}, {.max_new_tokens = 3, .max_context = 8})[0].tokens ==
        greedy_by_hand(model, TokenIds(20, 3), 3, 8));
  CHECK_THAT(test::error_line([&] { generate(model, {{5}}, {.max_new_tokens = 12}); }),
             Contains("sequence_length = 8"));
  // Tokens beyond the vocabulary are never chosen.
  for (const GeneratedTokens& text :
       generate(model, prompts, {.max_new_tokens = 8, .vocabulary_size = 3, .max_context = 8})) {
    for (const int64_t token : text.tokens) CHECK(token < 3);
  }
}

TEST_CASE("texts are continued as texts, and end before stop words") {
  const test::DTypeScope doubles("float64");
  Json words = Json::object();
  for (int64_t id = 0; id < vocabulary; ++id) words["w" + std::to_string(id)] = id;
  const Tokenizer tokenizer = Tokenizer::from_json(to_json_text(
      Json{{"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
           {"model", {{"type", "WordLevel"}, {"vocab", words}, {"unk_token", "w0"}}}}));
  const Functional model = language_model(gpt_block(), true, one_device());
  const TokenIds added = generate(model, {{5, 8, 7}}, {.max_new_tokens = 10})[0].tokens;
  std::string expected = "w5 w8 w7";
  std::vector<std::string> begun = {expected};
  for (const int64_t token : added) begun.push_back(expected += " w" + std::to_string(token));
  CHECK(generate(model, tokenizer, "w5 w8 w7", {.max_new_tokens = 10}) == expected);
  const std::string stop = "w" + std::to_string(added[3]) + " w" + std::to_string(added[4]);
  const size_t end = expected.find(stop, 8);
  CHECK(generate(model, tokenizer, "w5 w8 w7",
                 {.max_new_tokens = 10, .stop_words = {stop, "zzz"}}) == expected.substr(0, end));
  const std::vector<std::string> two =
      generate(model, tokenizer, std::vector<std::string>{"w2", "w5 w8 w7"}, {.max_new_tokens = 3});
  CHECK(two[1] == begun[3]);
  CHECK_THAT(test::error_line([&] { generate(model, {{5}}, {.stop_words = {"w1"}}); }),
             Contains("need a Tokenizer"));
}

TEST_CASE("a model with stages continues texts as one without stages") {
  const std::string family = GENERATE("gpt2", "llama");
  const auto [block, learned] = families().at(family);
  LayoutMap stages(create_mesh({{"stage", 2}, {"batch", 2}}, virtual_cpus(4)));
  stages.set_pipeline({.microbatches = 2});
  const Functional model = language_model(block, learned, stages);
  const Functional whole = language_model(block, learned, one_device());
  // One text is fewer than there are microbatches.
  for (const auto& prompts : std::vector<std::vector<TokenIds>>{{{3, 1, 4}, {9}, {2, 2}}, {{7}}}) {
    const auto expected = generate(whole, prompts, {.max_new_tokens = 5});
    const auto texts = generate(model, prompts, {.max_new_tokens = 5});
    CAPTURE(family, prompts.size());
    REQUIRE(texts.size() == expected.size());
    for (size_t t = 0; t < texts.size(); ++t) CHECK(texts[t].tokens == expected[t].tokens);
  }
}

TEST_CASE("a model that cannot be continued is refused by name") {
  const auto error = [](const LayerHandle& layer) {
    const test::SeedScope seed(3);
    const Input ids({-1}, {.dtype = "int64"});
    const SymbolicTensor x = Embedding(vocabulary, width)(SymbolicTensor(ids));
    const Functional model({ids}, {Dense(vocabulary)(layer(x))}, {.name = "mine"});
    return test::error_line([&] { generate(model, {{5, 8}}, {.max_new_tokens = 3}); });
  };
  CHECK_THAT(error(LSTM(width, {.return_sequences = true, .name = "memory"})),
             Contains("[generate, Functional mine]") && Contains("memory (LSTM)"));
  CHECK_THAT(error(Conv1D(width, 3, {.padding = "same", .name = "near"})),
             Contains("near (Conv1D)"));
  TransformerBlockOptions both = gpt_block();
  both.use_causal_mask = false;
  both.name = "bert";
  CHECK_THAT(error(TransformerBlock(both)),
             Contains("bert/attention (BlockAttention)") && Contains("use_causal_mask"));
  CHECK_THAT(error(GlobalAveragePooling1D()), Contains("(batch, T, vocabulary)"));
  const TransformerBlock causal(gpt_block());
  CHECK(error(causal) == "no error");
}

TEST_CASE("options and prompts that do not fit are refused in one line") {
  const Functional model = language_model(gpt_block(), true, one_device());
  const auto error = [&](const GenerateOptions& options, const std::vector<TokenIds>& from) {
    return test::error_line([&] { generate(model, from, options); });
  };
  const std::vector<TokenIds> one = {{1}};
  CHECK_THAT(error({}, {}), Contains("[generate] there is at least one prompt"));
  CHECK_THAT(error({}, {{1}, {}}), Contains("none in prompt 1"));
  CHECK_THAT(error({.max_new_tokens = 0}, one), Contains("max_new_tokens"));
  CHECK_THAT(error({.temperature = 0}, one), Contains("temperature is positive"));
  CHECK_THAT(error({.top_k = 0}, one), Contains("top_k"));
  CHECK_THAT(error({.top_p = 1.5}, one), Contains("top_p lies in (0, 1]"));
  CHECK_THAT(error({.top_p = 0.5, .num_beams = 2}, one), Contains("a beam search draws nothing"));
  CHECK_THAT(error({.num_beams = 0}, one), Contains("num_beams"));
  CHECK_THAT(error({.num_beams = 2, .on_token = [](int64_t, int64_t) {}}, one),
             Contains("on_token"));
  std::vector<double> logits = {0, std::nan("")};
  CHECK_THAT(test::error_line([&] { log_sum_exp(logits); }), Contains("logits are numbers"));
}

}  // namespace generate_test
