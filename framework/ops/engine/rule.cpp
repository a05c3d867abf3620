#include <tessera/framework/ops/engine/rule.hpp>

#include <map>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Rule parse() {
    std::vector<std::vector<int>>* side = &rule_.in;
    side->emplace_back();
    for (std::string word; next(word);) {
      if (word == ",") {
        side->emplace_back();
      } else if (word == "->") {
        side = &rule_.out;
        side->emplace_back();
      } else {
        side->back().push_back(factor(word, side == &rule_.out));
      }
    }
    for (size_t f = 0; f < rule_.factors.size(); ++f) {
      if (rule_.factors[f] == FactorKind::pass && !in_output_[f]) {
        rule_.factors[f] = FactorKind::reduce;
      }
    }
    return std::move(rule_);
  }

 private:
  bool next(std::string& word) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    word.clear();
    if (at_ < text_.size() && text_[at_] == ',') {
      word = ",";
      ++at_;
      return true;
    }
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != ',') word += text_[at_++];
    return !word.empty();
  }

  int factor(std::string word, bool output) {
    if (word == ".") return Rule::none;
    FactorKind kind = FactorKind::pass;
    if (word[0] == '!') kind = FactorKind::replicated;
    if (word[0] == '~') kind = FactorKind::window;
    if (kind != FactorKind::pass) word.erase(0, 1);
    const auto [it, inserted] = names_.emplace(word, static_cast<int>(rule_.factors.size()));
    if (inserted) {
      rule_.factors.push_back(kind);
      in_output_.push_back(false);
    }
    const size_t f = static_cast<size_t>(it->second);
    if (kind != FactorKind::pass) rule_.factors[f] = kind;
    in_output_[f] = in_output_[f] || output;
    return it->second;
  }

  std::string_view text_;
  size_t at_ = 0;
  Rule rule_;
  std::map<std::string, int> names_;
  std::vector<bool> in_output_;
};

}  // namespace

Rule Rule::parse(std::string_view text) { return Parser(text).parse(); }

Rule& Rule::passing(Passes kinds, std::vector<int> inputs) {
  passes = kinds;
  through = std::move(inputs);
  return *this;
}

Rule& Rule::reducing(Reduce kind) {
  reduce = kind;
  return *this;
}

}  // namespace tessera::detail
