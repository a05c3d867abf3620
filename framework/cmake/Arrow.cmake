# Finds Arrow's C++ library, which reads Parquet files: in TESSERA_ARROW_DIR, the folder of the package
# pyarrow, which `./run` installs if TESSERA_ARROW=1 in the environment, or in the system.
# Sets TESSERA_ARROW to OFF if Arrow is missing.
#
# Defines ARROW_INCLUDE_DIR and ARROW_LIBRARIES, as files and not targets, since programs that use an
# installed tessera do not need them.
set(TESSERA_ARROW_DIR ${CMAKE_SOURCE_DIR}/build/deps/pyarrow-26.0.1/pyarrow
  CACHE PATH "Folder of the package pyarrow")
find_path(ARROW_INCLUDE_DIR parquet/arrow/reader.h HINTS ${TESSERA_ARROW_DIR}/include)
# The package's libraries have only versioned names.
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
