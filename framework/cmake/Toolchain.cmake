# Compiler settings shared by all targets. A precompiled header is only valid for targets
# compiled with the same flags, so nothing here may differ between targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# Preset dev checks the bounds of containers. Release does not: every operation has loops over shapes and
# strides, which would become slower.
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1 -D_GLIBCXX_ASSERTIONS")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# Executables use -fPIC too: with -fPIE they could not reuse a library's precompiled header.
add_compile_options(-fPIC -Wall -Wextra -Werror)
# GCC would collect garbage several times for each source, all of the precompiled header with it: 15 % of the time
# that a source takes, to save next to no memory.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
  add_compile_options(--param=ggc-min-heapsize=4000000)
endif()
# In a unity build a local name may shadow a constant of another source, and GCC warns of anonymous
# namespaces as if the included source were a header.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wshadow=local -Wno-subobject-linkage)
elseif(NOT CMAKE_UNITY_BUILD)
  add_compile_options(-Wshadow)
endif()

# Texts with a file's name (of errors, for example) name it as in the repository, so that a commit gives the same
# bits in any folder. The last match counts.
add_compile_options(-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=
  -fmacro-prefix-map=${CMAKE_BINARY_DIR}/include/tessera/=)

# Hardening against buffer overflows: the C library's copies are checked, an overwritten stack
# ends the process, and the tables of functions of other libraries (GOT) are read-only.
add_compile_options(-fstack-protector-strong)
add_link_options(-Wl,-z,relro,-z,now)
if(NOT TESSERA_SANITIZE)
  # The address sanitizer intercepts only the unchecked functions.
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()

if(TESSERA_SANITIZE)
  add_compile_options(-fsanitize=${TESSERA_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TESSERA_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With a sanitizer, GCC 12 finds uninitialized memory in std::regex.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()

find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_CURRENT_LIST_DIR}/ccache.sh ${CCACHE_PROGRAM})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()
