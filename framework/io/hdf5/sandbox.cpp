#include <tessera/framework/io/hdf5/sandbox.hpp>

#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <initializer_list>

namespace tessera::detail::hdf5 {
namespace {

constexpr rlim_t max_memory_bytes = rlim_t{4} << 30;
/// Limit of CPU time: a constant, plus a second for each of these bytes.
constexpr rlim_t min_seconds = 3;
constexpr rlim_t max_writing_seconds = 600;
constexpr uint64_t bytes_per_second = uint64_t{256} << 10;

/// Sets a resource limit. Beyond `soft` the system sends a signal; at `hard` it kills the process.
bool limit(int resource, rlim_t soft, rlim_t hard) {
  const rlimit both{soft, hard};
  return ::setrlimit(static_cast<__rlimit_resource>(resource), &both) == 0;
}

bool limit(int resource, rlim_t soft) { return limit(resource, soft, soft); }

/// Whether to limit memory: not with sanitizers, whose shadow memory is unbounded.
constexpr bool bounds_memory =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    false;
#else
    true;
#endif

}  // namespace

const char* enter_sandbox(bool writes, uint64_t bytes) {
  if (bounds_memory && !limit(RLIMIT_AS, max_memory_bytes)) return "a memory limit";
  const rlim_t seconds = writes ? max_writing_seconds : min_seconds + bytes / bytes_per_second;
  if (!limit(RLIMIT_CPU, seconds, seconds + 1)) return "a CPU time limit";
  if (!limit(RLIMIT_CORE, 0)) return "disabling core dumps";
  if (!writes && !limit(RLIMIT_FSIZE, 0)) return "a file size limit";
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "no new privileges";
  const scmp_filter_ctx filter = ::seccomp_init(SCMP_ACT_KILL_PROCESS);
  if (!filter) return "a filter of system calls";
  bool made = true;
  const auto allow = [&](int call) {
    made = made && ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0) == 0;
  };
  // The C library's qsort() asks for sysinfo before it sorts many attributes.
  for (const int call : {SCMP_SYS(read),          SCMP_SYS(write),        SCMP_SYS(writev),
                         SCMP_SYS(pread64),       SCMP_SYS(close),        SCMP_SYS(fstat),
                         SCMP_SYS(lseek),         SCMP_SYS(brk),          SCMP_SYS(munmap),
                         SCMP_SYS(mremap),        SCMP_SYS(madvise),      SCMP_SYS(futex),
                         SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(time),
                         SCMP_SYS(sysinfo),       SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
                         SCMP_SYS(rt_sigreturn),  SCMP_SYS(getrandom),    SCMP_SYS(exit),
                         SCMP_SYS(exit_group)}) {
    allow(call);
  }
  if (writes) {
    allow(SCMP_SYS(pwrite64));
    allow(SCMP_SYS(ftruncate));
  }
  // Memory may be mapped, but not as executable.
  const auto no_program = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
  for (const int call : {SCMP_SYS(mmap), SCMP_SYS(mprotect)}) {
    made = made && ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1, no_program) == 0;
  }
  made = made && ::seccomp_load(filter) == 0;
  ::seccomp_release(filter);
  return made ? nullptr : "a filter of system calls";
}

}  // namespace tessera::detail::hdf5
