# Finds what GPU support needs at compile time: libc10_cuda of the libtorch in use, and the headers of the
# CUDA runtime, from the package nvidia-cuda-runtime next to libtorch or else from a CUDA
# toolkit. libtorch_cuda and NCCL are loaded when the first GPU is used. Sets TESSERA_GPUS to OFF if
# something is missing.
#
# Defines CUDA_PARTS_INCLUDE_DIRS and CUDA_PARTS_LIBRARIES, as files and not targets, since programs that
# use an installed tessera do not need them.

find_path(CUDA_RUNTIME_INCLUDE_DIR cuda_runtime_api.h
  HINTS ${TESSERA_TORCH_DIR}/../nvidia/cu13 ENV CUDA_HOME ENV CUDA_PATH
  PATHS /usr/local/cuda
  PATH_SUFFIXES include)
find_library(ATen_C10_CUDA_LIBRARY c10_cuda PATHS ${TESSERA_TORCH_DIR}/lib NO_DEFAULT_PATH)
mark_as_advanced(CUDA_RUNTIME_INCLUDE_DIR ATen_C10_CUDA_LIBRARY)

if(NOT CUDA_RUNTIME_INCLUDE_DIR OR NOT ATen_C10_CUDA_LIBRARY)
  set(TESSERA_GPUS OFF)
  message(STATUS "Built without GPU support: it needs libc10_cuda.so in ${TESSERA_TORCH_DIR}/lib, and \
cuda_runtime_api.h")
endif()
set(CUDA_PARTS_INCLUDE_DIRS ${CUDA_RUNTIME_INCLUDE_DIR})
set(CUDA_PARTS_LIBRARIES ${ATen_C10_CUDA_LIBRARY})
