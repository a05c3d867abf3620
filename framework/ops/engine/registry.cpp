#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::detail {
namespace {

std::vector<const OpInfo*>& entries() {
  static std::vector<const OpInfo*> list;
  return list;
}

}  // namespace

bool register_op(const OpInfo& info) {
  if (find_op(info.name)) {
    throw StateError("op " + std::string(info.name), "operation names must be unique",
                     "registered twice", "rename one of them");
  }
  entries().push_back(&info);
  return true;
}

std::vector<const OpInfo*> op_registry() {
  std::vector<const OpInfo*> list = entries();
  std::sort(list.begin(), list.end(),
            [](const OpInfo* a, const OpInfo* b) { return a->name < b->name; });
  return list;
}

const OpInfo* find_op(std::string_view name) {
  for (const OpInfo* info : entries()) {
    if (info->name == name) return info;
  }
  return nullptr;
}

}  // namespace tessera::detail
