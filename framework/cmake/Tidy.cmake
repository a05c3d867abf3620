# Target `tidy`: runs clang-tidy on every source of this tree, without compiling it.
find_program(RUN_CLANG_TIDY NAMES run-clang-tidy run-clang-tidy-14)
mark_as_advanced(RUN_CLANG_TIDY)
if(RUN_CLANG_TIDY)
  add_custom_target(tidy
    COMMAND ${RUN_CLANG_TIDY} -quiet -p ${CMAKE_BINARY_DIR}
      -extra-arg=-fno-openmp -extra-arg=-Wno-unknown-warning-option
      "^${CMAKE_SOURCE_DIR}/(framework|layers|optimizers|metrics|datasets|apps|tests)/"
    USES_TERMINAL VERBATIM)
else()
  add_custom_target(tidy
    COMMAND ${CMAKE_COMMAND} -E echo "run-clang-tidy is missing: apt-get install clang-tidy"
    COMMAND ${CMAKE_COMMAND} -E false)
endif()
