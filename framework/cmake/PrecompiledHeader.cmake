# Headers that nearly every source with tensors includes; parsing them takes 10 s if they are not precompiled.
set(TESSERA_PRECOMPILED_HEADERS
  <ATen/ATen.h>
  <ATen/Parallel.h>
  <c10/core/InferenceMode.h>
  <algorithm>
  <array>
  <chrono>
  <cmath>
  <condition_variable>
  <cstdint>
  <deque>
  <filesystem>
  <functional>
  <limits>
  <map>
  <memory>
  <mutex>
  <numeric>
  <optional>
  <set>
  <sstream>
  <stdexcept>
  <string>
  <string_view>
  <thread>
  <unordered_map>
  <utility>
  <variant>
  <vector>
  <nlohmann/json.hpp>)

# The same for the users of the library, applications and tests. A unity build compiles nearly all of them again after
# a change of a public header, so all of these are precompiled there: of 15 s that an application takes, 6 are theirs.
set(TESSERA_USERS_PRECOMPILED_HEADERS ${TESSERA_PRECOMPILED_HEADERS})
if(CMAKE_UNITY_BUILD)
  list(APPEND TESSERA_USERS_PRECOMPILED_HEADERS <tessera/tessera.hpp>)
endif()
