#pragma once

#include <cstddef>

/// The part of NCCL's ABI that the engine uses, unchanged since nccl.h 2.14. Declared here so that
/// building needs nothing but libtorch.
namespace tessera::detail {

struct NcclComm;  ///< ncclComm, opaque

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

/// ncclConfig_t of 2.14; `size` and `version` tell NCCL which later fields are missing.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21400;
  int blocking = 1;
};

/// cudaStream_t.
using NcclStream = void*;

}  // namespace tessera::detail
