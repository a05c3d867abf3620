// The functions of libbz2 that the static libarchive calls, which load libbz2 when the first bzip2
// file is read: Debian's static libbz2 cannot become part of a shared library. Only built if
// libarchive is static.
#include <bzlib.h>
#include <dlfcn.h>

namespace {

/// Returns a function of libbz2, or null without it.
template <class Function>
Function* bzip2_function(const char* name) {
  static void* const library = dlopen("libbz2.so.1.0", RTLD_NOW | RTLD_LOCAL);
  return library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}

}  // namespace

// NOLINTBEGIN: the names that libarchive calls.
extern "C" {

__attribute__((visibility("hidden"))) int BZ2_bzDecompressInit(bz_stream* stream, int verbosity,
                                                               int small) {
  static auto* const init = bzip2_function<decltype(BZ2_bzDecompressInit)>(__func__);
  return init ? init(stream, verbosity, small) : BZ_CONFIG_ERROR;
}

__attribute__((visibility("hidden"))) int BZ2_bzDecompress(bz_stream* stream) {
  static auto* const decompress = bzip2_function<decltype(BZ2_bzDecompress)>(__func__);
  return decompress ? decompress(stream) : BZ_CONFIG_ERROR;
}

__attribute__((visibility("hidden"))) int BZ2_bzDecompressEnd(bz_stream* stream) {
  static auto* const end = bzip2_function<decltype(BZ2_bzDecompressEnd)>(__func__);
  return end ? end(stream) : BZ_CONFIG_ERROR;
}

}  // extern "C"
// NOLINTEND
