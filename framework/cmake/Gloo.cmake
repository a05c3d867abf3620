# Finds Gloo, which carries tensors between processes, and sets TESSERA_GLOO_LINK: how to link it.
#
# libtorch_cpu.so holds a Gloo of another version under the same names. The first library in a
# program's list wins, so libgloo stands before libtorch_cpu there, in the list of each program: also
# where the linker sees no use for it. One item, because CMake moves single flags about.
find_package(Gloo CONFIG QUIET)
if(Gloo_FOUND)
  get_target_property(TESSERA_GLOO_LIBRARY gloo LOCATION)
  set(TESSERA_GLOO_LINK
    -Wl,--push-state,--no-as-needed,${TESSERA_GLOO_LIBRARY},--pop-state)
else()
  set(TESSERA_GLOO OFF)
  set(TESSERA_GLOO_LINK "")
  message(STATUS "Built without Gloo, which several processes need: it is in libgloo-dev")
endif()
