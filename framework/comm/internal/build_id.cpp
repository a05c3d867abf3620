#include <tessera/framework/comm/internal/build_id.hpp>

#include <elf.h>
#include <link.h>

#include <cstring>

namespace tessera::detail {
namespace {

/// Returns the build id among the notes of a segment, in hex; empty if there is none.
std::string id_in(const char* at, size_t size) {
  std::string id;
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof(note));
    const size_t name = (note.n_namesz + 3U) & ~3U, text = (note.n_descsz + 3U) & ~3U;
    const size_t total = sizeof(note) + name + text;
    if (total > size) break;
    if (note.n_type == NT_GNU_BUILD_ID) {
      static constexpr char digits[] = "0123456789abcdef";
      for (size_t i = 0; i < note.n_descsz; ++i) {
        const auto byte = static_cast<unsigned char>(at[sizeof(note) + name + i]);
        id += {digits[byte >> 4], digits[byte & 15]};
      }
    }
    at += total;
    size -= total;
  }
  return id;
}

int add_id(dl_phdr_info* object, size_t, void* text) {
  const std::string path = object->dlpi_name;
  // The program itself has no name.
  const bool ours = path.empty() || path.find("libtessera") != std::string::npos;
  for (int i = 0; ours && i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const ElfW(Addr) at = object->dlpi_addr + segment.p_vaddr;
    // The loader's table has addresses as integers.
    const auto* notes = reinterpret_cast<const char*>(at);  // NOLINT
    const std::string id = id_in(notes, segment.p_memsz);
    if (!id.empty()) *static_cast<std::string*>(text) += id.substr(0, 12) + " ";
  }
  return 0;
}

}  // namespace

std::string build_id() {
  std::string text;
  dl_iterate_phdr(add_id, &text);
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace tessera::detail
