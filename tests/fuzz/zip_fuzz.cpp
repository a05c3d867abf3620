#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/zip_archive.hpp>

#include "tests/fuzz/memory_file.hpp"

using namespace tessera;
using namespace tessera::detail;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::MemoryFile file;
  try {
    const ZipArchive archive(file.set({data, size}));
    uint64_t taken = 0;
    for (const ZipMember& member : archive.members()) {
      fuzz::require(archive.find(member.name) == &member);
      fuzz::require(member.name[0] != '/' && !member.name.starts_with("../"));
      fuzz::require(member.packed || member.stored == member.bytes);
      fuzz::require(member.offset <= size && member.stored <= size - member.offset);
      taken += member.stored;
      try {
        fuzz::require(archive.read(member, uint64_t{1} << 20).size() == member.bytes);
      } catch (const FileError&) {
      }
    }
    // No member shares bytes with another one.
    fuzz::require(taken <= size);
  } catch (const FileError&) {
  }
  return 0;
}
