// A program that opens the namespace and has functions with the most common names.
#include <tessera/tessera.hpp>

#include <string>
#include <vector>

#include <tessera/framework/strategy/strategies.hpp>

#include "tests/support/catch.hpp"

using namespace tessera;
using namespace tessera::strategy;

namespace {

int wait(int seconds) { return seconds; }
std::string join(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}
std::string str(double value) { return std::to_string(value); }
std::string file(const std::string& name) { return "/tmp/" + name; }
std::vector<int64_t> inputs(const Shape& shape) { return shape; }
std::vector<double> results(const std::vector<double>& totals) { return totals; }
int64_t numel(const Shape& shape) { return static_cast<int64_t>(shape.size()); }
bool exists(const std::string& path) { return !path.empty(); }
std::string read_file(const std::string& path) { return path; }
void combine(size_t& seed, size_t value) { seed ^= value; }
int inputs_of(const DTensor& x) { return static_cast<int>(x.rank()); }

struct Group {
  int members = 0;
};
struct Step {
  int number = 0;
};
struct Node {
  Node* next = nullptr;
};
struct Rule {
  std::string text;
};

}  // namespace

TEST_CASE("a program's own names do not collide with those of the library") {
  size_t seed = 1;
  combine(seed, 3);
  const DTensor x = ones({2, 3});
  CHECK(wait(2) == 2);
  CHECK(join({"a", "b"}, "-") == "a-b");
  CHECK(str(1) == "1.000000");
  CHECK(file("a") == "/tmp/a");
  CHECK(inputs({2, 3}) == Shape{2, 3});
  CHECK(results({1}) == std::vector<double>{1});
  CHECK(numel(x.shape()) == 2);
  CHECK(exists(read_file("a")));
  CHECK(seed == 2);
  CHECK(inputs_of(x) == 2);
  CHECK(Group{3}.members + Step{4}.number == 7);
  CHECK(Node{}.next == nullptr);
  CHECK(Rule{"b m"}.text == "b m");
}
