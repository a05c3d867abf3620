# Installs the library, its headers as <tessera/...>, programs under names with the prefix tessera-, and the
# files for find_package(tessera CONFIG) and pkg-config.
#
# Each file belongs to a component, of which deploy/packages/make_packages.py makes one package each: library,
# programs, development, parameter_server. The component arrow is for builds with Parquet files. Packages have
# libtorch beside the library, in lib/tessera/torch: the component bundle, which `cmake --install` leaves out,
# stands for the component in_place there.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)

# All that is installed.
add_custom_target(package_files)

# Sets the folders in which a target looks for libraries. They are the same in the build tree, which
# has the same layout: otherwise CMake would pad those of the build tree with an empty folder, which
# is the current one.
function(tessera_set_library_folders target)
  add_dependencies(package_files ${target})
  set_target_properties(${target} PROPERTIES
    BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH "${ARGN}")
endfunction()

# install_library(TARGET COMPONENT EXPORT): a shared library, its link without a version and its target.
function(install_library target component export)
  set_target_properties(${target} PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  set(link ${component})
  if(component STREQUAL "library")
    set(link development)
  endif()
  install(TARGETS ${target} EXPORT ${export}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component} NAMELINK_COMPONENT ${link}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT ${export} NAMESPACE tessera:: DESTINATION ${package_dir} COMPONENT ${link})
endfunction()

set(folders_of_programs "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
if(NOT CMAKE_INSTALL_LIBDIR STREQUAL lib)
  list(APPEND folders_of_programs "$ORIGIN/../lib")  # in the build tree
endif()

# install_program(APP COMPONENT): an application, as tessera-APP.
function(install_program app component)
  string(REPLACE "_" "-" name tessera-${app})
  tessera_set_library_folders(${app} ${folders_of_programs} ${TESSERA_TORCH_DIR}/lib)
  install(PROGRAMS $<TARGET_FILE:${app}> DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME ${name}
    COMPONENT ${component})
endfunction()

# libtorch is not copied: the library's RPATH is the libtorch folder of the build.
tessera_set_library_folders(tessera ${TESSERA_TORCH_DIR}/lib)
install_library(tessera library tesseraTargets)
if(TESSERA_GRPC)
  tessera_set_library_folders(tessera_parameter_server "$ORIGIN" ${TESSERA_TORCH_DIR}/lib)
  install_library(tessera_parameter_server parameter_server tesseraParameterServerTargets)
  install_program(parameter_server parameter_server)
  tessera_set_library_folders(mnist_parameter_servers "$ORIGIN" ${TESSERA_TORCH_DIR}/lib)
  install(TARGETS mnist_parameter_servers
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT parameter_server)
endif()
if(TESSERA_ARROW)
  cmake_path(GET ARROW_LIBRARY PARENT_PATH arrow_folder)
  tessera_set_library_folders(tessera_arrow
    "$ORIGIN" ${TESSERA_TORCH_DIR}/lib ${arrow_folder})
  install_library(tessera_arrow arrow tesseraArrowTargets)
endif()
foreach(folder framework layers optimizers metrics datasets)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/${folder}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tessera COMPONENT development
    FILES_MATCHING PATTERN "*.hpp" PATTERN cmake EXCLUDE PATTERN io/hdf5 EXCLUDE)
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/tessera.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tessera COMPONENT development)

foreach(app mnist imdb gpt finetune llm convert info)
  install_program(${app} programs)
endforeach()
# It needs neither the library nor libtorch.
add_dependencies(package_files launch)
install(PROGRAMS $<TARGET_FILE:launch> DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME tessera-launch
  COMPONENT programs)
foreach(app mnist imdb gpt)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/apps/${app}/layouts
    DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera/${app} COMPONENT programs)
endforeach()

# Programs that the library starts.
tessera_set_library_folders(check_export ${folders_of_programs} ${TESSERA_TORCH_DIR}/lib)
install(TARGETS check_export
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT library)
if(TESSERA_HDF5)
  tessera_set_library_folders(tessera_hdf5)
  set_target_properties(tessera_hdf5 PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS tessera_hdf5
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT library)
endif()

if(TESSERA_SENTENCEPIECE)
  install(TARGETS tessera_sentencepiece
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
endif()

# install_package_files(COMPONENT FOLDER TORCH_OF_CMAKE TORCH_OF_PKG_CONFIG): the files for find_package and
# pkg-config, written to FOLDER of the build, with libtorch's folder as each of the two writes it.
# The prefix in the .pc file is relative, so that the installed tree can be moved.
file(RELATIVE_PATH PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" PC_PREFIX ${PC_PREFIX})
function(install_package_files component folder torch_of_cmake torch_of_pkg_config)
  configure_package_config_file(
    ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/tesseraConfig.cmake.in ${folder}/tesseraConfig.cmake
    INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/tessera.pc.in ${folder}/tessera.pc @ONLY)
  install(FILES ${folder}/tesseraConfig.cmake DESTINATION ${package_dir}
    COMPONENT ${component} ${ARGN})
  install(FILES ${folder}/tessera.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT ${component} ${ARGN})
endfunction()
install_package_files(in_place ${CMAKE_BINARY_DIR} ${TESSERA_TORCH_DIR} ${TESSERA_TORCH_DIR})
install_package_files(bundle ${CMAKE_BINARY_DIR}/bundle
  "\${PACKAGE_PREFIX_DIR}/${CMAKE_INSTALL_LIBDIR}/tessera/torch" "\${libdir}/tessera/torch"
  EXCLUDE_FROM_ALL)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tesseraConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_BINARY_DIR}/tesseraConfigVersion.cmake ${CMAKE_CURRENT_LIST_DIR}/FindATen.cmake
  DESTINATION ${package_dir} COMPONENT development)
