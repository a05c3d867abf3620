# What GPUs need at compile time: the headers of the CUDA runtime and of NCCL, from a CUDA toolkit
# or else from the packages nvidia-cuda-runtime and nvidia-nccl-cu13 beside libtorch; and libc10_cuda
# of the libtorch in use. libtorch_cuda and NCCL are loaded when the first GPU is used.
#
# Defines TESSERA_CUDA_INCLUDE_DIRS and TESSERA_CUDA_LIBRARIES, files and not targets: an installed
# tessera is used without them.

find_path(CUDA_RUNTIME_INCLUDE_DIR cuda_runtime_api.h
  HINTS ENV CUDA_HOME ENV CUDA_PATH
  PATHS /usr/local/cuda ${TESSERA_TORCH_DIR}/../nvidia/cu13
  PATH_SUFFIXES include)
find_path(NCCL_INCLUDE_DIR nccl.h
  HINTS ${CUDA_RUNTIME_INCLUDE_DIR}
  PATHS ${TESSERA_TORCH_DIR}/../nvidia/nccl
  PATH_SUFFIXES include)
find_library(ATen_C10_CUDA_LIBRARY c10_cuda PATHS ${TESSERA_TORCH_DIR}/lib NO_DEFAULT_PATH)
mark_as_advanced(CUDA_RUNTIME_INCLUDE_DIR NCCL_INCLUDE_DIR ATen_C10_CUDA_LIBRARY)

function(cuda_require part name fix)
  if(NOT ${part})
    message(FATAL_ERROR "[TESSERA_CUDA] GPUs need ${name}. Received: ${part} not found. \
To fix: ${fix}, or configure without TESSERA_CUDA.")
  endif()
endfunction()
cuda_require(CUDA_RUNTIME_INCLUDE_DIR "cuda_runtime_api.h"
  "install the CUDA toolkit or the package nvidia-cuda-runtime beside libtorch")
cuda_require(NCCL_INCLUDE_DIR "nccl.h"
  "install NCCL or the package nvidia-nccl-cu13 beside libtorch")
cuda_require(ATen_C10_CUDA_LIBRARY "libc10_cuda.so in ${TESSERA_TORCH_DIR}/lib"
  "take a libtorch that was built with CUDA")

set(TESSERA_CUDA_INCLUDE_DIRS ${CUDA_RUNTIME_INCLUDE_DIR} ${NCCL_INCLUDE_DIR})
set(TESSERA_CUDA_LIBRARIES ${ATen_C10_CUDA_LIBRARY})
