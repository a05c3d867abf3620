#include <tessera/framework/base/own_class.hpp>

#include "tests/support/catch.hpp"

namespace {

struct Thing {
  virtual ~Thing() = default;
};
struct Mine : Thing {};

}  // namespace

namespace tessera {

struct OwnClassOfATest : Thing {};
template <class T>
struct OwnTemplateOfATest : Thing {};

namespace {

struct Hidden : Thing {
  struct Inner : Thing {};
};

}  // namespace

namespace of_a_program {

struct Other : OwnClassOfATest {};

}  // namespace of_a_program
}  // namespace tessera

using namespace tessera;

TEST_CASE("classes of namespace tessera are its own, all others are the program's") {
  CHECK(is_own_class(OwnClassOfATest()));
  CHECK(is_own_class(OwnTemplateOfATest<int>()));
  CHECK(is_own_class(Hidden()));
  const OwnClassOfATest& derived = of_a_program::Other();
  CHECK_FALSE(is_own_class(derived));
  CHECK_FALSE(is_own_class(Hidden::Inner()));
  CHECK_FALSE(is_own_class(Mine()));
  CHECK_FALSE(is_own_class(Thing()));
}
