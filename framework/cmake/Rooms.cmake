# A room is a folder of sources. In a unity build (preset release) the sources of a group are compiled
# as one, elsewhere (preset dev) each by itself. Names in anonymous namespaces are therefore unique
# within a group.

# add_room(TARGET FOLDER [GROUP name | GROUPS n] [EXCLUDE name...]): adds the *.cpp of the folder and
# of its internal/, but not those of other sub-folders. Small rooms share a GROUP, large ones are cut into several; alone, a room
# is one group. EXCLUDE: sources that stay out.
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

# Each of these files is compiled by itself in a unity build too.
function(compile_alone target)
  foreach(file ${ARGN})
    set_source_files_properties(${CMAKE_SOURCE_DIR}/${file} TARGET_DIRECTORY ${target}
      PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
endfunction()
