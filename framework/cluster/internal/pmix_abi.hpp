#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::detail::pmix {

// The part of PMIx's C interface that PmixClient uses, so that libpmix need not be there to build
// Tessera. Declared from PMIx 4.2.2; the structures are the same in 3.x, 4.x and 5.x, all of which
// are called libpmix.so.2.

constexpr int32_t success = 0;
constexpr int32_t done_at_once = -157;         ///< the callback will not be called
constexpr uint32_t any_rank = UINT32_MAX - 1;  ///< in keys of the job: PMIX_RANK_WILDCARD
constexpr uint8_t to_all = 3;                  ///< scope PMIX_GLOBAL

/// Type of a value.
enum class Type : uint16_t { boolean = 1, string = 3, uint16 = 13, uint32 = 14 };

constexpr const char* job_size = "pmix.job.size";      ///< uint32: processes of the job
constexpr const char* local_size = "pmix.local.size";  ///< uint32: those of this host
constexpr const char* local_peers = "pmix.lpeers";     ///< string: their ranks, "0,1,2"
constexpr const char* local_rank = "pmix.lrank";       ///< uint16: rank among them
constexpr const char* collect_data = "pmix.collect";   ///< boolean: a fence also exchanges values

struct Process {
  char job[256];
  uint32_t rank;
};

struct Value {
  Type type;
  union {
    bool boolean;
    uint16_t uint16;
    uint32_t uint32;
    char* string;
    // The largest members are structures of two pointers and a character.
    void* largest[3];
  };
};

struct Info {
  char key[512];
  uint32_t flags;
  Value value;
};

static_assert(sizeof(void*) != 8 || (sizeof(Process) == 260 && sizeof(Value) == 32 &&
                                     offsetof(Info, value) == 520 && sizeof(Info) == 552));

using Init = int32_t (*)(Process* self, Info* options, size_t count);
using Finalize = int32_t (*)(const Info* options, size_t count);
using Put = int32_t (*)(uint8_t scope, const char* key, Value* value);
using Commit = int32_t (*)();
/// `options` must exist until `done` is called, on a thread of the library.
using Done = void (*)(int32_t status, void* data);
using FenceNb = int32_t (*)(const Process* processes, size_t count, const Info* options,
                            size_t option_count, Done done, void* data);
/// The value and its text are allocated with malloc().
using Get = int32_t (*)(const Process* process, const char* key, const Info* options, size_t count,
                        Value** value);
using ErrorString = const char* (*)(int32_t status);

}  // namespace tessera::detail::pmix
