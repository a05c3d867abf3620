# Finds what the Python module is compiled with: Python's headers, and nanobind in
# TESSERA_NANOBIND_DIR, where `./run test` and `./run wheel` install it. Sets TESSERA_PYTHON to OFF if
# either is missing.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
# nanobind takes the Python that the tests run.
set(Python_EXECUTABLE ${Python3_EXECUTABLE})
find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module)
set(TESSERA_NANOBIND_DIR ${CMAKE_SOURCE_DIR}/build/deps/python_tools/nanobind
  CACHE PATH "Folder of the package nanobind")
if(Python_Development.Module_FOUND)
  find_package(nanobind 3 CONFIG QUIET PATHS ${TESSERA_NANOBIND_DIR}/cmake)
endif()
if(TESSERA_SANITIZE)
  # Python itself would have to load the sanitizers.
  set(TESSERA_PYTHON OFF)
elseif(NOT Python_Development.Module_FOUND OR NOT nanobind_FOUND)
  set(TESSERA_PYTHON OFF)
  message(STATUS "Built without the Python module: it needs python3-dev and nanobind, which "
    "./run test installs")
endif()
