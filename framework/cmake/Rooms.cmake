# A room is a folder of sources. A unity build (preset release) compiles the sources of a group as
# one; other builds (preset dev) compile each source separately. Names in anonymous namespaces must
# therefore be unique within a group.

# add_room(TARGET FOLDER [GROUP name | GROUPS n] [EXCLUDE name...]): adds the *.cpp of the folder and
# of its internal/, but not those of other sub-folders. By default a room is one group; small rooms share
# a GROUP, and large ones are split into n GROUPS. EXCLUDE: sources to leave out.
function(add_room target folder)
  cmake_parse_arguments(room "" "GROUP;GROUPS" "EXCLUDE" ${ARGN})
  if(NOT room_GROUPS)
    set(room_GROUPS 1)
  endif()
  if(NOT room_GROUP)
    string(MAKE_C_IDENTIFIER ${folder} room_GROUP)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp
    ${CMAKE_SOURCE_DIR}/${folder}/internal/*.cpp)
  foreach(name ${room_EXCLUDE})
    list(REMOVE_ITEM sources ${CMAKE_SOURCE_DIR}/${folder}/${name}.cpp)
  endforeach()
  target_sources(${target} PRIVATE ${sources})
  list(LENGTH sources count)
  set(number 0)
  foreach(source ${sources})
    math(EXPR part "${number} * ${room_GROUPS} / ${count}")
    set_source_files_properties(${source} TARGET_DIRECTORY ${target}
      PROPERTIES UNITY_GROUP ${room_GROUP}_${part})
    math(EXPR number "${number} + 1")
  endforeach()
endfunction()

# compile_alone(TARGET FILE...): compiles each file separately, even in a unity build.
function(compile_alone target)
  foreach(file ${ARGN})
    set_source_files_properties(${CMAKE_SOURCE_DIR}/${file} TARGET_DIRECTORY ${target}
      PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
endfunction()

# compile_exactly(TARGET FILE...): compiles each file separately, without fused multiply-adds, which round
# differently; comparisons of floats may be vectorized, as nobody catches their traps. Clang warns of loops that it
# cannot vectorize, such as those with tanh(): they are slower there.
function(compile_exactly target)
  compile_alone(${target} ${ARGN})
  foreach(file ${ARGN})
    set_source_files_properties(${CMAKE_SOURCE_DIR}/${file} TARGET_DIRECTORY ${target}
      PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS
        "-ffp-contract=off;-fno-trapping-math;$<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>")
  endforeach()
endfunction()
