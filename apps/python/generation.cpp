#include "apps/python/generation.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/tessera.hpp>

#include "apps/python/arrays.hpp"
#include "apps/python/interruptible.hpp"
#include "apps/python/model.hpp"

namespace tessera::python {

using namespace detail;

namespace {

[[noreturn]] void refuse_tokens(const std::string& received) {
  throw nb::type_error(
      str("[generate] tokens are lists of token ids, one for each text. Received: ", received,
          ". To fix: pass [[5, 80, 7], [9]], or an array of integers.")
          .c_str());
}

/// Returns the token ids of one text: a list of integers, or an array of one axis.
TokenIds ids_of(nb::handle row) {
  if (is_array(row)) {
    const at::Tensor ids = tensor_of(row, "tokens");
    if (ids.dim() != 1 || !at::isIntegralType(ids.scalar_type(), /*includeBool=*/false)) {
      refuse_tokens(str("an array of ", ids.dim(), " axes, ", dtype_name(ids.scalar_type())));
    }
    const at::Tensor numbers = ids.to(at::kLong).contiguous();
    const int64_t* const first = numbers.const_data_ptr<int64_t>();
    return {first, first + numbers.numel()};
  }
  TokenIds ids;
  if (nb::isinstance<nb::str>(row) || !nb::try_cast(row, ids)) refuse_tokens(type_name_of(row));
  return ids;
}

std::vector<TokenIds> prompts_of(nb::handle tokens) {
  std::vector<TokenIds> prompts;
  if (is_array(tokens)) {
    const at::Tensor rows = tensor_of(tokens, "tokens");
    if (rows.dim() != 2) refuse_tokens(str("an array of ", rows.dim(), " axes"));
  } else if (!nb::isinstance<nb::list>(tokens) && !nb::isinstance<nb::tuple>(tokens)) {
    refuse_tokens(type_name_of(tokens));
  }
  for (const nb::handle row : tokens) prompts.push_back(ids_of(row));
  return prompts;
}

/// Returns options whose functions call Python's, which must live as long.
GenerateOptions with_functions(GenerateOptions options, nb::handle stop, nb::handle on_token) {
  // By handles: options are copied and destroyed without the GIL.
  if (!stop.is_none()) {
    options.stop = [stop](std::span<const int64_t> added) {
      const nb::gil_scoped_acquire gil;
      return nb::cast<bool>(nb::bool_(stop(TokenIds(added.begin(), added.end()))));
    };
  }
  if (!on_token.is_none()) {
    options.on_token = [on_token](int64_t text, int64_t token) {
      const nb::gil_scoped_acquire gil;
      on_token(text, token);
    };
  }
  return options;
}

std::vector<GeneratedTokens> generate(const PythonModel& model, nb::handle tokens,
                                      int64_t max_new_tokens, std::optional<double> temperature,
                                      std::optional<int64_t> top_k, std::optional<double> top_p,
                                      int64_t seed, int64_t num_beams, double length_penalty,
                                      bool early_stopping, const std::vector<int64_t>& stop_tokens,
                                      nb::handle stop, nb::handle on_token,
                                      std::optional<int64_t> vocabulary_size,
                                      std::optional<int64_t> max_context, bool check_model) {
  const std::vector<TokenIds> prompts = prompts_of(tokens);
  const GenerateOptions options = with_functions({.max_new_tokens = max_new_tokens,
                                                  .temperature = temperature,
                                                  .top_k = top_k,
                                                  .top_p = top_p,
                                                  .seed = seed,
                                                  .num_beams = num_beams,
                                                  .length_penalty = length_penalty,
                                                  .early_stopping = early_stopping,
                                                  .stop_tokens = stop_tokens,
                                                  .vocabulary_size = vocabulary_size,
                                                  .max_context = max_context,
                                                  .check_model = check_model},
                                                 stop, on_token);
  return run_released([&] {
    Continuation texts(model.handle, prompts, options);
    while (!texts.complete()) {
      if (const int signal = stop_signal()) {
        throw Interrupted(signal, "generate", signal_name(signal), "");
      }
      texts.step();
    }
    return texts.texts();
  });
}

}  // namespace

void bind_generation(nb::module_& module) {
  nb::class_<GeneratedTokens>(module, "GeneratedTokens", "The tokens that a model adds to a text.")
      .def_ro("tokens", &GeneratedTokens::tokens, "The new token ids.")
      .def_ro("log_probabilities", &GeneratedTokens::log_probabilities,
              "The logarithm of each token's probability, by the model's logits as they are.")
      .def_ro("stopped", &GeneratedTokens::stopped,
              "Whether a stop token or `stop` ended the text.")
      .def_ro("score", &GeneratedTokens::score,
              "The sum of log_probabilities; of a beam search, divided by "
              "length**length_penalty.")
      .def("__repr__", [](const GeneratedTokens& text) {
        return str("GeneratedTokens(", text.tokens.size(), " tokens, score=", text.score, ")");
      });

  auto type = nb::borrow<nb::class_<PythonModel>>(module.attr("Model"));
  type.def(
      "generate", &generate, nb::arg("tokens"), nb::arg("max_new_tokens") = 64, nb::kw_only(),
      nb::arg("temperature") = nb::none(), nb::arg("top_k") = nb::none(),
      nb::arg("top_p") = nb::none(), nb::arg("seed") = 0, nb::arg("num_beams") = 1,
      nb::arg("length_penalty") = 1.0, nb::arg("early_stopping") = false,
      nb::arg("stop_tokens") = std::vector<int64_t>(), nb::arg("stop") = nb::none(),
      nb::arg("on_token") = nb::none(), nb::arg("vocabulary_size") = nb::none(),
      nb::arg("max_context") = nb::none(), nb::arg("check_model") = true,
      "Continues texts, each a list of token ids, with a model that maps (batch, T) token ids to "
      "(batch, T, vocabulary) logits; returns a GeneratedTokens for each. Without temperature, "
      "top_k and top_p, each token is the most probable one. `stop(tokens)` is called with a "
      "text's new tokens after each one, and ends it with True; `on_token(text, token)` is called "
      "with each new token. Ctrl-C ends it after a token. Collective.");
}

}  // namespace tessera::python
