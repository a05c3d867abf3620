# Finds the ATen part of a libtorch: its headers, libc10 and libtorch_cpu, all from one folder.
#
# The folder (with include/ and lib/) is TESSERA_TORCH_DIR, or else the environment variable of that
# name, or else the wheel that `./run build` installs. System paths are never searched.
# Defines the imported target ATen::ATen and ATen_VERSION.

if(NOT TESSERA_TORCH_DIR)
  if(DEFINED ENV{TESSERA_TORCH_DIR})
    set(default_dir $ENV{TESSERA_TORCH_DIR})
  else()
    # The last version in the list, as `./run` installs it.
    file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/torch_versions.txt versions REGEX "^[0-9]")
    list(GET versions -1 default_version)
    set(default_dir ${CMAKE_SOURCE_DIR}/build/deps/torch-${default_version}/torch)
  endif()
  set(TESSERA_TORCH_DIR ${default_dir} CACHE PATH "Folder of libtorch: include/ and lib/" FORCE)
endif()

# TESSERA_TORCH_DIR changed since the last configuration: search again.
if(ATen_SEARCHED_DIR AND NOT ATen_SEARCHED_DIR STREQUAL TESSERA_TORCH_DIR)
  unset(ATen_INCLUDE_DIR CACHE)
  unset(ATen_C10_LIBRARY CACHE)
  unset(ATen_CPU_LIBRARY CACHE)
endif()
set(ATen_SEARCHED_DIR ${TESSERA_TORCH_DIR} CACHE INTERNAL "")

find_path(ATen_INCLUDE_DIR ATen/ATen.h PATHS ${TESSERA_TORCH_DIR}/include NO_DEFAULT_PATH)
find_library(ATen_C10_LIBRARY c10 PATHS ${TESSERA_TORCH_DIR}/lib NO_DEFAULT_PATH)
find_library(ATen_CPU_LIBRARY torch_cpu PATHS ${TESSERA_TORCH_DIR}/lib NO_DEFAULT_PATH)
mark_as_advanced(ATen_INCLUDE_DIR ATen_C10_LIBRARY ATen_CPU_LIBRARY)

# Clears the cached results, so that the next configuration searches again, and stops with an error.
function(aten_reject message)
  unset(ATen_INCLUDE_DIR CACHE)
  unset(ATen_C10_LIBRARY CACHE)
  unset(ATen_CPU_LIBRARY CACHE)
  message(FATAL_ERROR "${message}")
endfunction()

file(REAL_PATH ${TESSERA_TORCH_DIR} torch_root)
foreach(part ATen_INCLUDE_DIR ATen_C10_LIBRARY ATen_CPU_LIBRARY)
  if(NOT ${part})
    aten_reject("[TESSERA_TORCH_DIR] a libtorch needs include/ATen/ATen.h, lib/libc10.so \
and lib/libtorch_cpu.so. Received: ${TESSERA_TORCH_DIR} (${part} not found). \
To fix: write \"./run build\", which installs one, or pass -DTESSERA_TORCH_DIR=FOLDER.")
  endif()
  file(REAL_PATH ${${part}} real_part)
  string(FIND "${real_part}" "${torch_root}/" at)
  if(NOT at EQUAL 0)
    aten_reject("[${part}] headers and libraries must come from one libtorch. \
Received: ${real_part}, outside ${torch_root}. \
To fix: write \"./run build\", or pass -DTESSERA_TORCH_DIR=FOLDER and no single parts.")
  endif()
endforeach()

set(ATen_VERSION "")
foreach(file torch/headeronly/version.h torch/version.h)
  if(NOT ATen_VERSION AND EXISTS ${ATen_INCLUDE_DIR}/${file})
    file(STRINGS ${ATen_INCLUDE_DIR}/${file} lines REGEX "define TORCH_VERSION_(MAJOR|MINOR) ")
    string(REGEX REPLACE "[^0-9]+([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2" ATen_VERSION "${lines}")
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ATen
  REQUIRED_VARS ATen_CPU_LIBRARY ATen_C10_LIBRARY ATen_INCLUDE_DIR VERSION_VAR ATen_VERSION)

find_package(OpenMP REQUIRED COMPONENTS CXX)

if(NOT TARGET ATen::ATen)
  add_library(ATen::c10 SHARED IMPORTED)
  set_target_properties(ATen::c10 PROPERTIES IMPORTED_LOCATION ${ATen_C10_LIBRARY})
  add_library(ATen::ATen SHARED IMPORTED)
  # Without -fopenmp, at::parallel_for in our code would silently be serial.
  set_target_properties(ATen::ATen PROPERTIES
    IMPORTED_LOCATION ${ATen_CPU_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${ATen_INCLUDE_DIR}
    INTERFACE_COMPILE_DEFINITIONS _GLIBCXX_USE_CXX11_ABI=1
    INTERFACE_COMPILE_OPTIONS "${OpenMP_CXX_FLAGS}"
    INTERFACE_LINK_OPTIONS "${OpenMP_CXX_FLAGS}"
    INTERFACE_LINK_LIBRARIES ATen::c10)
endif()
