#pragma once

#include <catch2/catch.hpp>

#include <string>
#include <type_traits>
#include <vector>

namespace Catch {

// c10 declares operator<< for every vector, also of elements that lack one. That fails to compile
// as soon as Catch prints such a vector.
template <class T, class A>
struct StringMaker<std::vector<T, A>,
                   std::enable_if_t<Detail::IsStreamInsertable<std::vector<T, A>>::value>> {
  static std::string convert(const std::vector<T, A>& values) { return rangeToString(values); }
};

}  // namespace Catch
