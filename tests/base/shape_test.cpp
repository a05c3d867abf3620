#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/shape.hpp>

#include "tests/support/catch.hpp"

namespace shape_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("shard intervals cover the axis in order, without gap or overlap") {
  for (int64_t n : {0, 1, 2, 3, 7, 8, 10, 97}) {
    for (int64_t k : {1, 2, 3, 4, 8, 11}) {
      int64_t next = 0;
      for (int64_t i = 0; i < k; ++i) {
        const Interval shard = shard_interval(n, k, i);
        REQUIRE(shard.lo == next);
        REQUIRE(shard.size() >= n / k);
        REQUIRE(shard.size() <= n / k + 1);
        next = shard.hi;
      }
      REQUIRE(next == n);
    }
  }
}

TEST_CASE("shard intervals follow floor(i*n/k)") {
  CHECK(shard_interval(10, 4, 0) == Interval{0, 2});
  CHECK(shard_interval(10, 4, 1) == Interval{2, 5});
  CHECK(shard_interval(10, 4, 2) == Interval{5, 7});
  CHECK(shard_interval(10, 4, 3) == Interval{7, 10});
  CHECK(shard_interval(2, 3, 0).empty());
  CHECK(shard_interval(2, 3, 2) == Interval{1, 2});
}

TEST_CASE("shards of shards nest: 8 ways on 1000 refine 4 ways and 2 ways") {
  for (int64_t i = 0; i < 8; ++i) {
    const Interval fine = shard_interval(1000, 8, i);
    CHECK(intersect(fine, shard_interval(1000, 4, i / 2)) == fine);
    CHECK(intersect(fine, shard_interval(1000, 2, i / 4)) == fine);
  }
}

TEST_CASE("intersect") {
  CHECK(intersect({0, 5}, {3, 9}) == Interval{3, 5});
  CHECK(intersect({3, 9}, {0, 5}) == Interval{3, 5});
  CHECK(intersect({0, 9}, {2, 4}) == Interval{2, 4});
  CHECK(intersect({0, 3}, {3, 6}).empty());
  const Interval apart = intersect({0, 2}, {5, 6});
  CHECK(apart.empty());
  CHECK(apart.size() == 0);
}

TEST_CASE("a shape's numel and text") {
  CHECK(numel({}) == 1);
  CHECK(numel({2, 3, 4}) == 24);
  CHECK(numel({2, 0, 4}) == 0);
  CHECK_THROWS_AS(numel({int64_t{1} << 40, int64_t{1} << 40}), ShapeError);
  CHECK(to_string(Shape{}) == "()");
  CHECK(to_string(Shape{5}) == "(5,)");
  CHECK(to_string(Shape{2, 3}) == "(2, 3)");
}

TEST_CASE("normalize_axis") {
  CHECK(normalize_axis(0, 3, "sum") == 0);
  CHECK(normalize_axis(-1, 3, "sum") == 2);
  CHECK(normalize_axis(-3, 3, "sum") == 0);
  CHECK_THROWS_AS(normalize_axis(3, 3, "sum"), ShapeError);
  CHECK_THROWS_AS(normalize_axis(-4, 3, "sum"), ShapeError);
  CHECK_THROWS_AS(normalize_axis(0, 0, "sum"), ShapeError);
  CHECK_THROWS_WITH(normalize_axis(3, 3, "sum"),
                    "[sum] axis must be in [-3, 3). Received: axis 3. "
                    "To fix: name an axis the tensor has.");
}

}  // namespace shape_test
