# Finds Gloo, which carries tensors between processes, and sets TESSERA_GLOO_LINK, the flags that link it.
#
# libtorch_cpu.so contains another version of Gloo under the same names. The first library in a
# program's list wins, so libgloo comes before libtorch_cpu in the list of every program, even
# if the linker sees no use for it (--no-as-needed). It is one item, because CMake reorders separate flags.
find_package(Gloo CONFIG QUIET)
if(Gloo_FOUND)
  get_target_property(TESSERA_GLOO_LIBRARY gloo LOCATION)
  set(TESSERA_GLOO_LINK
    -Wl,--push-state,--no-as-needed,${TESSERA_GLOO_LIBRARY},--pop-state)
else()
  set(TESSERA_GLOO OFF)
  set(TESSERA_GLOO_LINK "")
  message(STATUS "Built without Gloo, which multiple processes need: it is in libgloo-dev")
endif()
