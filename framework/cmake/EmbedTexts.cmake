# embed_texts(HEADER NAMESPACE KIND FILE...): writes generated/HEADER, in which each file's text is a constant
# in NAMESPACE, named after the file without its extension. KIND is the raw string delimiter, which the texts
# must not contain. Headers of the tree are inlined where they are included.
function(embed_texts header namespace kind)
  set(texts "#pragma once\n\nnamespace ${namespace} {\n\n")
  foreach(file ${ARGN})
    cmake_path(GET file STEM name)
    file(READ ${file} text)
    string(REGEX MATCHALL "#include <tessera/[^>]*>" includes "${text}")
    foreach(include ${includes})
      string(REGEX REPLACE "#include <tessera/(.*)>" "${CMAKE_SOURCE_DIR}/\\1" included "${include}")
      file(READ ${included} part)
      string(REPLACE "${include}" "${part}" text "${text}")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${included})
    endforeach()
    string(APPEND texts "inline constexpr const char* ${name} = R\"${kind}(${text})${kind}\";\n")
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/${header}
    CONTENT "${texts}\n}  // namespace ${namespace}\n" @ONLY)
endfunction()
