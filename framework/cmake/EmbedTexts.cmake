# embed_texts(HEADER NAMESPACE KIND FILE...): writes generated/HEADER, in which each file's text is a constant
# in NAMESPACE, named as the file without its extension. KIND delimits the texts, which must not contain it.
# A header of the tree stands in a text where it is included.
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
