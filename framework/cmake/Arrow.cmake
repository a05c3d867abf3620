# Finds Arrow's C++ library, which reads Parquet files: in the folder TESSERA_ARROW_DIR of the package
# pyarrow, which `./run` installs where the environment's TESSERA_ARROW is 1, or installed in the system.
# TESSERA_ARROW is off where it is missing.
#
# Defines ARROW_INCLUDE_DIR and ARROW_LIBRARIES, files and not targets: an installed tessera is used
# without them.
set(TESSERA_ARROW_DIR ${CMAKE_SOURCE_DIR}/build/deps/pyarrow-26.0.1/pyarrow
  CACHE PATH "Folder of the package pyarrow")
find_path(ARROW_INCLUDE_DIR parquet/arrow/reader.h HINTS ${TESSERA_ARROW_DIR}/include)
# In the package they have no names without a version.
find_library(ARROW_LIBRARY NAMES libarrow.so.2600 arrow HINTS ${TESSERA_ARROW_DIR})
find_library(PARQUET_LIBRARY NAMES libparquet.so.2600 parquet HINTS ${TESSERA_ARROW_DIR})
mark_as_advanced(ARROW_INCLUDE_DIR ARROW_LIBRARY PARQUET_LIBRARY)
set(arrow_major 0)
if(ARROW_INCLUDE_DIR)
  file(STRINGS ${ARROW_INCLUDE_DIR}/arrow/util/config.h arrow_major REGEX "define ARROW_VERSION_MAJOR ")
  string(REGEX REPLACE "[^0-9]" "" arrow_major "${arrow_major}")
endif()
if(NOT ARROW_LIBRARY OR NOT PARQUET_LIBRARY OR arrow_major LESS 26)
  set(TESSERA_ARROW OFF)
  message(STATUS
    "Built without Parquet files: they need Arrow 26, which TESSERA_ARROW=1 ./run setup installs")
  return()
endif()
set(ARROW_LIBRARIES ${PARQUET_LIBRARY} ${ARROW_LIBRARY})
