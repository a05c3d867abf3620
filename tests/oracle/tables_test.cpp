#include "tests/support/catch.hpp"
#include "tests/support/golden_text.hpp"
#include "tests/support/oracle.hpp"

namespace tables_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// Returns the lines of every registered operation.
std::string table(const std::string& heading, std::string (*lines)(const OpInfo&)) {
  std::vector<std::pair<std::string, std::string>> blocks;
  for (const OpInfo* info : op_registry())
    blocks.push_back({std::string(info->name), lines(*info)});
  return heading + "\n" + grouped(blocks);
}

}  // namespace

TEST_CASE("plans equal those of the committed table") {
  const std::string heading =
      "Plans on mesh batch=2, model=2: input layouts -> output layouts, or input layouts => what\n"
      "they are brought to first -> output layouts. Shapes stand above. Layouts that differ from\n"
      "one listed in the names of the mesh dimensions alone are left out.\n";
  CHECK(golden_difference("plan_table.txt", table(heading, plan_lines)) == "");
}

TEST_CASE("bytes equal those of the committed table") {
  const std::string heading =
      "Bytes that each of four devices on mesh x=4 receives: input layouts: forward, backward.\n"
      "Float inputs are of 8 bytes. Layouts that cost nothing are left out, and of operations "
      "with\n"
      "more than 64 assignments of layouts, all but 64.\n";
  CHECK(golden_difference("oracle_bytes.txt", table(heading, byte_lines)) == "");
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
