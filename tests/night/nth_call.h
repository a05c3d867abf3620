// Which of a process' calls fails: included by failing_malloc.c and failing_calls.c, libraries that
// are loaded by LD_PRELOAD. Calls are counted from 1 on, from the beginning of main() or from
// night_arm(). The environment says:
//   NIGHT_NTH      number of the call that fails; 0: none
//   NIGHT_ERROR    errno of the failure, or "short" or "exit"
//   NIGHT_PROGRAM  short name of the program whose calls count (default: every program)
//   NIGHT_ONLY     VARIABLE=VALUE: calls count only in processes with it (default: in all)
//   NIGHT_START    "call": calls count from night_arm() on only (default: from main() on)
//   NIGHT_COUNT    file to which the number of calls is appended at the end
#ifndef TESSERA_NIGHT_NTH_CALL_H
#define TESSERA_NIGHT_NTH_CALL_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum night_fault { night_none, night_errno, night_short };
enum { night_exit_code = 99 };
// Values of `error` in night_arm() that are not an errno.
enum { night_is_short = -1, night_is_exit = -2 };

static _Atomic int night_armed;
static _Atomic long night_calls;
static long night_nth;
static int night_error = ENOMEM;
static const char* night_count_file;

/// Counts from here on: call number `nth` fails with `error`.
void night_arm(long nth, int error) {
  night_nth = nth;
  night_error = error;
  night_calls = 0;
  night_armed = 1;
}

/// Ends counting. Returns the number of calls.
long night_disarm(void) {
  night_armed = 0;
  return night_calls;
}

/// Counts a call. Returns what is to happen to it; if it fails, errno is set.
static enum night_fault night_next(void) {
  if (!night_armed) return night_none;
  if (++night_calls != night_nth) return night_none;
  if (night_error == night_is_exit) _exit(night_exit_code);
  if (night_error == night_is_short) return night_short;
  errno = night_error;
  return night_errno;
}

static int night_is_meant(void) {
  const char* program = getenv("NIGHT_PROGRAM");
  if (program && strcmp(program, program_invocation_short_name) != 0) return 0;
  const char* only = getenv("NIGHT_ONLY");
  const char* equals = only ? strchr(only, '=') : NULL;
  if (!equals) return 1;
  char name[64] = "";
  if ((size_t)(equals - only) >= sizeof name) return 0;
  memcpy(name, only, (size_t)(equals - only));
  const char* value = getenv(name);
  return value && strcmp(value, equals + 1) == 0;
}

static int (*night_main)(int, char**, char**);

static int night_counted_main(int count, char** arguments, char** environment) {
  const char* start = getenv("NIGHT_START");
  if (night_is_meant()) {
    const char* nth = getenv("NIGHT_NTH");
    const char* error = getenv("NIGHT_ERROR");
    night_count_file = getenv("NIGHT_COUNT");
    night_nth = nth ? atol(nth) : 0;
    if (error) {
      night_error = !strcmp(error, "short")  ? night_is_short
                    : !strcmp(error, "exit") ? night_is_exit
                                             : atoi(error);
    }
    if (!start || strcmp(start, "call") != 0) night_arm(night_nth, night_error);
  }
  return night_main(count, arguments, environment);
}

/// Takes the place of the C library's function of this name, which calls main().
int __libc_start_main(int (*main_function)(int, char**, char**), int count, char** arguments,
                      void (*initialize)(void), void (*finish)(void), void (*finish_linker)(void),
                      void* stack_end) {
  int (*next)(int (*)(int, char**, char**), int, char**, void (*)(void), void (*)(void),
              void (*)(void), void*);
  *(void**)&next = dlsym(RTLD_NEXT, "__libc_start_main");
  night_main = main_function;
  return next(night_counted_main, count, arguments, initialize, finish, finish_linker, stack_end);
}

__attribute__((destructor)) static void night_end(void) {
  const long calls = night_disarm();
  if (!night_count_file) return;
  char line[32];
  const int size = snprintf(line, sizeof line, "%ld\n", calls);
  const int file = open(night_count_file, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (file < 0) return;
  if (write(file, line, (size_t)size) != size) errno = EIO;
  close(file);
}

#endif
