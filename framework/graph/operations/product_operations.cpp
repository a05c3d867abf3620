#include <algorithm>
#include <cctype>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/graph/operations/operation.hpp>
#include <tessera/framework/ops/internal/equation.hpp>
#include <tessera/framework/ops/ops.hpp>

namespace tessera::detail {
namespace {

/// Returns the letters that the test accepts, in order.
template <class Test>
std::string letters_where(const Test& test) {
  std::string letters;
  for (int c = 'A'; c <= 'z'; ++c) {
    if (std::isalpha(c) && test(char(c))) letters += char(c);
  }
  return letters;
}

/// Returns the terms of an equation without spaces, the output last, with letters in place of
/// "...". An implicit output has the axes of "..." and the letters that occur once, as in NumPy.
std::vector<std::string> terms_of(const std::string& equation, const std::vector<DTensor>& x) {
  const Equation written = split_equation(equation);
  const auto count = [&](char c) { return std::count(equation.begin(), equation.end(), c); };
  const std::string free = letters_where([&](char c) { return count(c) == 0; });
  std::vector<std::string> terms = written.in;
  const std::string dots = "...";
  // Axes of "..." are aligned at the last one.
  const auto expand_ellipsis = [&](std::string& term, size_t axes) {
    const size_t at = term.find(dots);
    if (at != std::string::npos) term.replace(at, dots.size(), free.substr(free.size() - axes));
  };
  size_t max_axes = 0;
  for (size_t i = 0; i < std::min(terms.size(), x.size()); ++i) {
    const auto rank = static_cast<size_t>(x[i].rank());
    const bool open = terms[i].find(dots) != std::string::npos;
    const size_t named = terms[i].size() - (open ? dots.size() : 0);
    const size_t axes = open && rank > named ? std::min(rank - named, free.size()) : 0;
    expand_ellipsis(terms[i], axes);
    max_axes = std::max(max_axes, axes);
  }
  const std::string implicit = dots + letters_where([&](char c) { return count(c) == 1; });
  std::string output = written.out.value_or(implicit);
  expand_ellipsis(output, max_axes);
  terms.push_back(output);
  return terms;
}

DTensor summed(const OperationCall& call) {
  std::vector<DTensor> x = {call.tensor("x1")};
  if (!call.argument("x2").is_null()) x = call.promoted({"x1", "x2"});
  const auto subscripts = call.option<std::string>("subscripts");
  std::string equation = subscripts;
  std::erase(equation, ' ');
  std::vector<std::string> terms = terms_of(equation, x);
  for (const std::string& term : terms) {
    const bool letters =
        std::all_of(term.begin(), term.end(), [](unsigned char c) { return std::isalpha(c); });
    if (!letters)
      json_fail(subscripts, call.path_of("subscripts"), "letters, \",\", \"->\" and \"...\"");
  }
  const std::string output = terms.back();
  terms.pop_back();
  return ops::einsum(join(terms, ",") + "->" + output, x);
}

}  // namespace

std::vector<GraphOperation> product_operations() {
  return {
      make_operation("Matmul", numpy, {"x1", "x2"}, Json::object(),
                     [](const OperationCall& call) {
                       const std::vector<DTensor> x = call.promoted({"x1", "x2"});
                       return ops::matmul(x[0], x[1]);
                     }),
      make_operation("Einsum", numpy, {"x1", "x2"}, {{"subscripts", nullptr}}, summed),
  };
}

}  // namespace tessera::detail
