#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace tessera::detail {

/// The terms of an Einstein summation "ab,bc->ac": letters for the axes of each input, and of the
/// output if the equation names one.
struct Equation {
  std::vector<std::string> in;
  std::optional<std::string> out;
};

inline Equation split_equation(const std::string& equation) {
  const size_t arrow = std::min(equation.find("->"), equation.size());
  Equation terms{{""}, {}};
  for (const char c : equation.substr(0, arrow)) {
    if (c == ',') {
      terms.in.emplace_back();
    } else {
      terms.in.back() += c;
    }
  }
  if (arrow < equation.size()) terms.out = equation.substr(arrow + 2);
  return terms;
}

inline bool repeats_letter(std::string term) {
  std::sort(term.begin(), term.end());
  return std::adjacent_find(term.begin(), term.end()) != term.end();
}

}  // namespace tessera::detail
