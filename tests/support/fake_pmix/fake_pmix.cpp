// PMIx' functions, as PmixClient loads them from a libpmix.so.2. The processes of a job exchange
// values through a folder.
//
// FAKE_PMIX_FOLDER  the folder
// FAKE_PMIX_HOSTS   the host of each rank: "0,0,1"
// FAKE_PMIX_FENCE   "open": a fence waits for nobody; "stuck": it never ends
// FAKE_PMIX_FAIL    what fails: "PMIx_Put", or for a key "PMIx_Get pmix.lrank"
// FAKE_PMIX_TYPE    a key whose value has another type
// FAKE_PMIX_ALONE   if set, PMIx_Init() finds no launcher

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <tessera/framework/cluster/internal/pmix_abi.hpp>

namespace tessera::test {
namespace {

using namespace detail::pmix;

constexpr int32_t unreachable = -25;
constexpr int32_t not_found = -46;

std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text ? text : "";
}

std::string path(const std::string& name, uint32_t rank) {
  return variable("FAKE_PMIX_FOLDER") + "/" + name + "." + std::to_string(rank);
}

uint32_t own_rank() { return static_cast<uint32_t>(std::stoul(variable("PMIX_RANK"))); }

std::vector<std::string> hosts() {
  std::vector<std::string> names;
  std::istringstream list(variable("FAKE_PMIX_HOSTS"));
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  return names;
}

bool fails(const std::string& call) { return variable("FAKE_PMIX_FAIL") == call; }

/// Writes the file at once, so that no other process reads a part of it.
void write(const std::string& file, const std::string& text) {
  std::ofstream(file + ".new") << text;
  std::filesystem::rename(file + ".new", file);
}

Value text_value(const std::string& text) {
  Value value = {};
  value.type = Type::string;
  value.string = strdup(text.c_str());
  return value;
}

Value number_value(Type type, uint32_t number) {
  Value value = {};
  value.type = type;
  if (type == Type::uint16) {
    value.uint16 = static_cast<uint16_t>(number);
  } else {
    value.uint32 = number;
  }
  return value;
}

/// Returns the ranks on this process' host.
std::vector<uint32_t> local_ranks() {
  const std::vector<std::string> all = hosts();
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == all[own_rank()]) ranks.push_back(rank);
  }
  return ranks;
}

bool find_value(const std::string& key, uint32_t rank, Value& value) {
  const std::vector<uint32_t> local = local_ranks();
  if (key == variable("FAKE_PMIX_TYPE")) {
    value.type = Type::boolean;
  } else if (key == job_size) {
    value = number_value(Type::uint32, static_cast<uint32_t>(hosts().size()));
  } else if (key == local_size) {
    value = number_value(Type::uint32, static_cast<uint32_t>(local.size()));
  } else if (key == local_rank) {
    const auto at = std::find(local.begin(), local.end(), rank);
    value = number_value(Type::uint16, static_cast<uint32_t>(at - local.begin()));
  } else if (key == local_peers) {
    std::string text;
    for (const uint32_t each : local) text += (text.empty() ? "" : ",") + std::to_string(each);
    value = text_value(text);
  } else {
    std::ifstream file(path(key, rank));
    if (!file) return false;
    std::ostringstream text;
    text << file.rdbuf();
    value = text_value(text.str());
  }
  return true;
}

void wait_for_all() {
  static int number = 0;
  const std::string name = "fence" + std::to_string(number++);
  write(path(name, own_rank()), "");
  if (variable("FAKE_PMIX_FENCE") == "open") return;
  for (uint32_t rank = 0; rank < hosts().size(); ++rank) {
    while (!std::filesystem::exists(path(name, rank))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

}  // namespace
}  // namespace tessera::test

using namespace tessera::test;

// NOLINTBEGIN(readability-identifier-naming): PMIx' names
extern "C" {

int32_t PMIx_Init(Process* self, Info* /*options*/, size_t /*count*/) {
  if (fails("PMIx_Init")) return unreachable;
  const std::string job = variable("FAKE_PMIX_ALONE").empty() ? variable("PMIX_NAMESPACE") : "own";
  std::strncpy(self->job, job.c_str(), sizeof self->job - 1);
  self->rank = own_rank();
  write(path("begun", self->rank), "");
  return success;
}

int32_t PMIx_Finalize(const Info* /*options*/, size_t /*count*/) {
  write(path("finalized", own_rank()), "");
  return success;
}

int32_t PMIx_Put(uint8_t scope, const char* key, Value* value) {
  if (fails("PMIx_Put") || scope != to_all || value->type != Type::string) return unreachable;
  write(path(key, own_rank()), value->string);
  return success;
}

int32_t PMIx_Commit() { return fails("PMIx_Commit") ? unreachable : success; }

int32_t PMIx_Fence_nb(const Process* /*processes*/, size_t /*count*/, const Info* options,
                      size_t option_count, Done done, void* data) {
  if (fails("PMIx_Fence")) return unreachable;
  if (option_count != 1 || std::string(options->key) != collect_data) return not_found;
  if (variable("FAKE_PMIX_FENCE") == "stuck") return success;
  std::thread([done, data] {
    wait_for_all();
    done(fails("PMIx_Fence later") ? unreachable : success, data);
  }).detach();
  return success;
}

int32_t PMIx_Get(const Process* process, const char* key, const Info* /*options*/, size_t /*count*/,
                 Value** value) {
  if (fails(std::string("PMIx_Get ") + key)) return unreachable;
  Value found = {};
  if (!find_value(key, process->rank, found)) return not_found;
  *value = static_cast<Value*>(std::malloc(sizeof found));
  **value = found;
  return success;
}

const char* PMIx_Error_string(int32_t status) {
  return status == unreachable ? "UNREACHABLE" : status == not_found ? "NOT-FOUND" : "ERROR";
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
