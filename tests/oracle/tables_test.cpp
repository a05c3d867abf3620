#include <cstdlib>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/oracle.hpp"

namespace tables_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// The lines of every registered operation.
std::string table(const std::string& heading, std::string (*lines)(const OpInfo&)) {
  std::vector<std::pair<std::string, std::string>> blocks;
  for (const OpInfo* info : op_registry())
    blocks.push_back({std::string(info->name), lines(*info)});
  return heading + "\n" + grouped(blocks);
}

/// The first line in which two texts differ; empty if none does.
std::string first_difference(const std::string& actual, const std::string& expected) {
  size_t line = 0;
  for (size_t i = 0; i < std::max(actual.size(), expected.size()); ++i) {
    if (i >= actual.size() || i >= expected.size() || actual[i] != expected[i]) {
      const auto show = [&](const std::string& text) {
        return text.substr(line, text.find('\n', std::min(i, text.size())) - line);
      };
      return "is now \"" + show(actual) + "\", was \"" + show(expected) + "\"";
    }
    if (actual[i] == '\n') line = i + 1;
  }
  return "";
}

/// Compares with a committed file; TESSERA_UPDATE_GOLDEN=1 writes it instead.
std::string compared(const std::string& file, const std::string& actual) {
  const char* update = std::getenv("TESSERA_UPDATE_GOLDEN");
  if (update && std::string(update) == "1") {
    write_file(golden_path(file), actual);
    return "";
  }
  const std::string wrong = first_difference(actual, read_file(golden_path(file)));
  return wrong.empty() ? "" : file + " " + wrong + " (write it anew with TESSERA_UPDATE_GOLDEN=1)";
}

}  // namespace

TEST_CASE("plans are those of the committed table") {
  const std::string heading =
      "Plans on mesh batch=2, model=2: input layouts -> output layouts, or input layouts => what\n"
      "they are brought to first -> output layouts. Shapes stand above. Layouts that differ from\n"
      "one listed in the names of the mesh dimensions alone are left out.\n";
  CHECK(compared("plan_table.txt", table(heading, plan_lines)) == "");
}

TEST_CASE("bytes are those of the committed table") {
  const std::string heading =
      "Bytes that each of four devices on mesh x=4 receives: input layouts: forward, backward.\n"
      "Float inputs are of 8 bytes. Layouts that cost nothing are left out, and of operations "
      "with\n"
      "more than 64 assignments of layouts, all but 64.\n";
  CHECK(compared("oracle_bytes.txt", table(heading, byte_lines)) == "");
}

TEST_CASE("bytes do not depend on how blocks merge") {
  for (const OpInfo* info : op_registry()) {
    const std::string expected = byte_lines(*info, BlockPolicy::per_shard);
    for (BlockPolicy policy : {BlockPolicy::per_device, BlockPolicy::per_worker}) {
      INFO(info->name);
      CHECK(first_difference(byte_lines(*info, policy), expected) == "");
    }
  }
}

}  // namespace tables_test
