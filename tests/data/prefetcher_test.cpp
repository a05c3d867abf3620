#include <tessera/framework/data/internal/prefetcher.hpp>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"

namespace prefetcher_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

Examples element(int64_t number) { return {.x = {at::full({1}, number)}}; }

/// Returns the number of an element; -1 for none.
int64_t number_of(const std::optional<Examples>& made) {
  return made ? made->x[0].item<int64_t>() : -1;
}

}  // namespace

TEST_CASE("prefetched elements come in order, until the first that there is not") {
  for (const int64_t threads : {1, 4}) {
    const auto make = [](int64_t number) -> std::optional<Examples> {
      // The first of each four takes longest.
      std::this_thread::sleep_for(std::chrono::milliseconds(3 - number % 4));
      return number < 20 ? std::optional(element(number)) : std::nullopt;
    };
    Prefetcher prefetcher([&] { return make; }, 5, threads, 6);
    for (int64_t number = 5; number < 20; ++number) CHECK(number_of(prefetcher.next()) == number);
    CHECK_FALSE(prefetcher.next());
    CHECK_FALSE(prefetcher.next());
  }
}

TEST_CASE("no more elements are made than may wait") {
  using namespace std::chrono_literals;
  std::atomic<int> made{0};
  const auto make = [&](int64_t number) {
    ++made;
    return std::optional(element(number));
  };
  Prefetcher prefetcher([&] { return make; }, 0, 2, 3);
  const auto settles_at = [&](int count) {
    for (int i = 0; i < 500 && made < count; ++i) std::this_thread::sleep_for(10ms);
    std::this_thread::sleep_for(20ms);
    return made == count;
  };
  CHECK(settles_at(3));
  CHECK(number_of(prefetcher.next()) == 0);
  CHECK(settles_at(4));
}

TEST_CASE("an exception comes in its element's turn, and again after that") {
  const auto make = [](int64_t number) -> std::optional<Examples> {
    if (number == 2) throw std::runtime_error("no two");
    return element(number);
  };
  Prefetcher prefetcher([&] { return make; }, 0, 3, 3);
  CHECK(number_of(prefetcher.next()) == 0);
  CHECK(number_of(prefetcher.next()) == 1);
  CHECK_THROWS_WITH(prefetcher.next(), "no two");
  CHECK_THROWS_WITH(prefetcher.next(), "no two");
}

TEST_CASE("an exception at the beginning of a thread comes instead of the first element") {
  const auto begin = []() -> Prefetcher::Make { throw std::runtime_error("no thread"); };
  Prefetcher prefetcher(begin, 0, 1, 1);
  CHECK_THROWS_WITH(prefetcher.next(), "no thread");
  CHECK_THROWS_WITH(prefetcher.next(), "no thread");
}

}  // namespace prefetcher_test
