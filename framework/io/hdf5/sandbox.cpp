#include <tessera/framework/io/hdf5/sandbox.hpp>

#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <initializer_list>

namespace tessera::detail::hdf5 {
namespace {

constexpr rlim_t most_memory = rlim_t{4} << 30;
/// Time of the processor: so much for any file, and a second more for each of these bytes.
constexpr rlim_t least_seconds = 10;
constexpr rlim_t most_writing = 600;
constexpr uint64_t bytes_of_second = uint64_t{256} << 10;

/// Beyond `most` the system says so by a signal; at `end` it does not ask.
bool limit(int resource, rlim_t most, rlim_t end) {
  const rlimit both{most, end};
  return ::setrlimit(static_cast<__rlimit_resource>(resource), &both) == 0;
}

bool limit(int resource, rlim_t most) { return limit(resource, most, most); }

/// Without the sanitizers, whose shadow memory has no bounds.
constexpr bool bounds_memory =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    false;
#else
    true;
#endif

}  // namespace

const char* enter_sandbox(bool writes, uint64_t bytes) {
  if (bounds_memory && !limit(RLIMIT_AS, most_memory)) return "a bound of its memory";
  const rlim_t seconds = writes ? most_writing : least_seconds + bytes / bytes_of_second;
  if (!limit(RLIMIT_CPU, seconds, seconds + 1)) return "a bound of its time";
  if (!limit(RLIMIT_CORE, 0)) return "a bound of its traces";
  if (!writes && !limit(RLIMIT_FSIZE, 0)) return "a bound of its files";
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
  // Memory, but none that could hold a program.
  const auto no_program = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
  for (const int call : {SCMP_SYS(mmap), SCMP_SYS(mprotect)}) {
    made = made && ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1, no_program) == 0;
  }
  made = made && ::seccomp_load(filter) == 0;
  ::seccomp_release(filter);
  return made ? nullptr : "a filter of system calls";
}

}  // namespace tessera::detail::hdf5
