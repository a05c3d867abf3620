#pragma once

#include <cstddef>

/// What the engine uses of NCCL's binary interface, as nccl.h of 2.14 and every later one has it:
/// so that nothing but libtorch is needed to build.
namespace tessera::detail {

struct NcclComm;  ///< ncclComm, which only NCCL knows

/// ncclResult_t; every other value is an error.
enum class NcclResult : int { success = 0, in_progress = 7 };

/// ncclDataType_t.
enum class NcclType : int {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  int64 = 4,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9
};

/// ncclRedOp_t.
enum class NcclOp : int { sum = 0, max = 2, min = 3 };

/// ncclUniqueId.
struct NcclId {
  char internal[128];
};

/// ncclConfig_t as 2.14 has it; NCCL tells by `size` and `version` what a program does not know of.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21400;
  int blocking = 1;
};

/// cudaStream_t.
using NcclStream = void*;

}  // namespace tessera::detail
