// A library for LD_PRELOAD in which one call that reads, writes or names files fails, transfers
// only a part, or ends the process. The standard streams are left alone. See nth_call.h.
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "nth_call.h"

// The C library's function of this name, as `next`.
#define NEXT(name)               \
  static __typeof__(name)* next; \
  if (!next) *(void**)&next = dlsym(RTLD_NEXT, #name)

static int fails(void) { return night_next() == night_errno; }

/// Counts a transfer of `size` bytes. Returns whether it fails; otherwise the bytes to transfer.
static int transfer_fails(int file, size_t* size) {
  if (file <= STDERR_FILENO) return 0;
  const enum night_fault fault = night_next();
  if (fault == night_short && *size > 1) *size = (*size + 1) / 2;
  return fault == night_errno;
}

#define OPEN(name)                                 \
  int name(const char* path, int flags, ...) {     \
    NEXT(name);                                    \
    va_list rest;                                  \
    va_start(rest, flags);                         \
    const mode_t mode = va_arg(rest, mode_t);      \
    va_end(rest);                                  \
    return fails() ? -1 : next(path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                       \
  int name(int folder, const char* path, int flags, ...) { \
    NEXT(name);                                            \
    va_list rest;                                          \
    va_start(rest, flags);                                 \
    const mode_t mode = va_arg(rest, mode_t);              \
    va_end(rest);                                          \
    return fails() ? -1 : next(folder, path, flags, mode); \
  }
OPENAT(openat)
OPENAT(openat64)

// What calls with _FORTIFY_SOURCE become.
int __open_2(const char* path, int flags) { return open(path, flags, 0); }
int __open64_2(const char* path, int flags) { return open64(path, flags, 0); }
int __openat_2(int folder, const char* path, int flags) { return openat(folder, path, flags, 0); }
int __openat64_2(int folder, const char* path, int flags) {
  return openat64(folder, path, flags, 0);
}

FILE* fopen(const char* path, const char* mode) {
  NEXT(fopen);
  return fails() ? NULL : next(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  NEXT(fopen64);
  return fails() ? NULL : next(path, mode);
}

ssize_t read(int file, void* bytes, size_t size) {
  NEXT(read);
  return transfer_fails(file, &size) ? -1 : next(file, bytes, size);
}
ssize_t __read_chk(int file, void* bytes, size_t size, size_t room) {
  if (size > room) abort();
  return read(file, bytes, size);
}
ssize_t write(int file, const void* bytes, size_t size) {
  NEXT(write);
  return transfer_fails(file, &size) ? -1 : next(file, bytes, size);
}

#define PREAD(name)                                                          \
  ssize_t name(int file, void* bytes, size_t size, off_t from) {             \
    NEXT(name);                                                              \
    return transfer_fails(file, &size) ? -1 : next(file, bytes, size, from); \
  }
PREAD(pread)
PREAD(pread64)

ssize_t __pread_chk(int file, void* bytes, size_t size, off_t from, size_t room) {
  if (size > room) abort();
  return pread(file, bytes, size, from);
}
ssize_t __pread64_chk(int file, void* bytes, size_t size, off_t from, size_t room) {
  if (size > room) abort();
  return pread64(file, bytes, size, from);
}

#define PWRITE(name)                                                       \
  ssize_t name(int file, const void* bytes, size_t size, off_t to) {       \
    NEXT(name);                                                            \
    return transfer_fails(file, &size) ? -1 : next(file, bytes, size, to); \
  }
PWRITE(pwrite)
PWRITE(pwrite64)

int fsync(int file) {
  NEXT(fsync);
  return fails() ? -1 : next(file);
}
int fdatasync(int file) {
  NEXT(fdatasync);
  return fails() ? -1 : next(file);
}
int rename(const char* from, const char* to) {
  NEXT(rename);
  return fails() ? -1 : next(from, to);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  NEXT(renameat2);
  return fails() ? -1 : next(from_folder, from, to_folder, to, flags);
}
int ftruncate(int file, off_t size) {
  NEXT(ftruncate);
  return fails() ? -1 : next(file, size);
}
int ftruncate64(int file, off_t size) {
  NEXT(ftruncate64);
  return fails() ? -1 : next(file, size);
}
int fchmod(int file, mode_t mode) {
  NEXT(fchmod);
  return fails() ? -1 : next(file, mode);
}
off_t lseek(int file, off_t to, int whence) {
  NEXT(lseek);
  return fails() ? -1 : next(file, to, whence);
}
off_t lseek64(int file, off_t to, int whence) {
  NEXT(lseek64);
  return fails() ? -1 : next(file, to, whence);
}
int mkdir(const char* path, mode_t mode) {
  NEXT(mkdir);
  return fails() ? -1 : next(path, mode);
}
/// Closes the file even where it fails, as Linux does.
int close(int file) {
  NEXT(close);
  const int fault = file > STDERR_FILENO && fails();
  const int error = errno;
  const int result = next(file);
  if (!fault) return result;
  errno = error;
  return -1;
}
