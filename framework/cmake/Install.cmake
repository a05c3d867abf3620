# Installs the library, its headers as <tessera/...>, the programs mnist, imdb, tessera-check-export,
# tessera-hdf5 and tessera-launch, and the files for find_package(tessera CONFIG) and pkg-config.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)

# Sets the folders in which a target looks for libraries. They are the same in the build tree, which
# has the same layout: otherwise CMake would pad those of the build tree with an empty folder, which
# is the current one.
function(tessera_set_library_folders target)
  set_target_properties(${target} PROPERTIES
    BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH "${ARGN}")
endfunction()

set(folders_of_programs "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
if(NOT CMAKE_INSTALL_LIBDIR STREQUAL lib)
  list(APPEND folders_of_programs "$ORIGIN/../lib")  # in the build tree
endif()

# libtorch is not copied: the library's RPATH is the libtorch folder of the build.
tessera_set_library_folders(tessera ${TESSERA_TORCH_DIR}/lib)
set(libraries tessera)
if(TESSERA_GRPC)
  tessera_set_library_folders(tessera_parameter_server "$ORIGIN" ${TESSERA_TORCH_DIR}/lib)
  list(APPEND libraries tessera_parameter_server)
endif()
if(TESSERA_ARROW)
  cmake_path(GET ARROW_LIBRARY PARENT_PATH arrow_folder)
  tessera_set_library_folders(tessera_arrow
    "$ORIGIN" ${TESSERA_TORCH_DIR}/lib ${arrow_folder})
  list(APPEND libraries tessera_arrow)
endif()
install(TARGETS ${libraries} EXPORT tesseraTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(folder framework layers optimizers metrics datasets)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/${folder}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tessera
    FILES_MATCHING PATTERN "*.hpp" PATTERN cmake EXCLUDE PATTERN io/hdf5 EXCLUDE)
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/tessera.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tessera)

if(TESSERA_GRPC)
  tessera_set_library_folders(mnist_parameter_servers "$ORIGIN" ${TESSERA_TORCH_DIR}/lib)
  install(TARGETS mnist_parameter_servers LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
foreach(app mnist imdb check_export)
  tessera_set_library_folders(${app} ${folders_of_programs} ${TESSERA_TORCH_DIR}/lib)
  install(TARGETS ${app} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endforeach()
foreach(app mnist imdb)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/apps/${app}/layouts
    DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera/${app})
endforeach()

if(TESSERA_HDF5)
  tessera_set_library_folders(tessera_hdf5)
  set_target_properties(tessera_hdf5 PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS tessera_hdf5 RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

if(TESSERA_SENTENCEPIECE)
  install(TARGETS tessera_sentencepiece LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

# Installed under a name with a prefix; it needs neither the library nor libtorch.
install(PROGRAMS $<TARGET_FILE:launch> DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME tessera-launch)

install(EXPORT tesseraTargets NAMESPACE tessera:: DESTINATION ${package_dir})
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/tesseraConfig.cmake.in ${CMAKE_BINARY_DIR}/tesseraConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tesseraConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_BINARY_DIR}/tesseraConfig.cmake ${CMAKE_BINARY_DIR}/tesseraConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindATen.cmake
  DESTINATION ${package_dir})

# Relative to the .pc file, so that the installed tree can be moved.
file(RELATIVE_PATH PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" PC_PREFIX ${PC_PREFIX})
configure_file(${CMAKE_CURRENT_LIST_DIR}/tessera.pc.in ${CMAKE_BINARY_DIR}/tessera.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tessera.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
