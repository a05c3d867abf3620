#include <tessera/framework/drawing/axis_ticks.hpp>

#include <algorithm>
#include <cmath>

#include "tests/support/catch.hpp"

namespace axis_ticks_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

using Labels = std::vector<std::string>;

}  // namespace

TEST_CASE("ticks are round numbers around the values", "[ticks]") {
  CHECK(value_ticks(0.31, 2.2, 5).labels == Labels{"0", "0.5", "1.0", "1.5", "2.0", "2.5"});
  CHECK(value_ticks(0.6, 0.9, 5).labels == Labels{"0.6", "0.7", "0.8", "0.9"});
  CHECK(value_ticks(-3, 11, 5).labels == Labels{"-5", "0", "5", "10", "15"});
  CHECK(value_ticks(1.1e-6, 2.9e-6, 5).labels ==
        Labels{"1.0e-06", "1.5e-06", "2.0e-06", "2.5e-06", "3.0e-06"});
  CHECK(value_ticks(0, 4e7, 4).labels == Labels{"0", "1e+07", "2e+07", "3e+07", "4e+07"});
}

TEST_CASE("ticks of any range are few, ascending and distinct", "[ticks]") {
  const double values[] = {-1.7e308, -1e20, -1,     -1e-300, 0,
                           5e-324,   1e-9,  0.1,    1,       std::nextafter(1, 2),
                           97.3,     1e17,  1.7e308};
  for (const double lo : values) {
    for (const double hi : values) {
      if (lo > hi) continue;
      const Ticks ticks = value_ticks(lo, hi, 5);
      CAPTURE(lo, hi, ticks.labels);
      REQUIRE(ticks.values.size() >= 2);
      REQUIRE(ticks.values.size() <= 8);
      const double slack = 1e-5 * (ticks.values.back() - ticks.values.front());
      CHECK(ticks.values.front() <= std::max(lo, -1e300) + slack);
      CHECK(ticks.values.back() >= std::min(hi, 1e300) - slack);
      for (size_t i = 1; i < ticks.values.size(); ++i) {
        CHECK(ticks.values[i] > ticks.values[i - 1]);
        CHECK(ticks.labels[i] != ticks.labels[i - 1]);
      }
    }
  }
}

TEST_CASE("epochs have integer ticks", "[ticks]") {
  CHECK(integer_ticks(1, 5, 8).labels == Labels{"1", "2", "3", "4", "5"});
  CHECK(integer_ticks(1, 12, 8).labels == Labels{"2", "4", "6", "8", "10", "12"});
  CHECK(integer_ticks(1, 200, 8).labels == Labels{"50", "100", "150", "200"});
  CHECK(integer_ticks(7, 7, 8).labels == Labels{"7"});
}

TEST_CASE("numbers in a legend are short", "[ticks]") {
  CHECK(short_number(0.031249) == "0.03125");
  CHECK(short_number(12345678) == "1.235e+07");
  CHECK(short_number(-NAN) == "nan");
  CHECK(short_number(-INFINITY) == "-inf");
}

}  // namespace axis_ticks_test
