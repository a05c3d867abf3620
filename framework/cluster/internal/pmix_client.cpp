#include <tessera/framework/cluster/internal/pmix_client.hpp>

#include <dlfcn.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

/// A fence in progress. The library and the waiting thread own it together, as either may be last.
struct PendingFence {
  pmix::Info collect = {};
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<int32_t> status;
};

void end_fence(int32_t status, void* data) {
  const std::unique_ptr<std::shared_ptr<PendingFence>> owner(
      static_cast<std::shared_ptr<PendingFence>*>(data));
  const std::lock_guard<std::mutex> lock((*owner)->mutex);
  (*owner)->status = status;
  (*owner)->changed.notify_all();
}

/// Frees what PMIx_Get() returned.
void free_pmix_value(pmix::Value* value) {
  if (value != nullptr && value->type == pmix::Type::string) std::free(value->string);
  std::free(value);
}

}  // namespace

PmixClient::PmixClient(const std::string& library, const std::string& job, std::string where,
                       std::string otherwise)
    : where_(std::move(where)), otherwise_(std::move(otherwise)) {
  load(library);
  find("PMIx_Init", init_);
  find("PMIx_Finalize", finalize_);
  find("PMIx_Put", put_);
  find("PMIx_Commit", commit_);
  find("PMIx_Fence_nb", fence_nb_);
  find("PMIx_Get", get_);
  find("PMIx_Error_string", error_string_);
  check(init_(&self_, nullptr, 0), "PMIx_Init");
  // Without a launcher the library makes a job of this process alone.
  self_.job[sizeof self_.job - 1] = '\0';
  if (self_.job != job) {
    finalize_(nullptr, 0);
    throw CommError(where_, str("the launcher of the job ", in_quotes(job), " answers"),
                    "PMIx_Init found none: it has ended, or these are another process' variables",
                    otherwise_);
  }
}

PmixClient::~PmixClient() { finalize_(nullptr, 0); }

uint32_t PmixClient::job_number(const char* key) const { return number(pmix::any_rank, key); }

uint32_t PmixClient::own_number(const char* key) const { return number(self_.rank, key); }

std::string PmixClient::job_text(const char* key) const { return text_of(pmix::any_rank, key); }

void PmixClient::leave(const std::string& key, const std::string& text) {
  std::string copy = text;
  pmix::Value value = {};
  value.type = pmix::Type::string;
  value.string = copy.data();
  check(put_(pmix::to_all, key.c_str(), &value), "PMIx_Put");
  check(commit_(), "PMIx_Commit");
}

void PmixClient::fence(std::chrono::milliseconds timeout) {
  const auto pending = std::make_shared<PendingFence>();
  std::strncpy(pending->collect.key, pmix::collect_data, sizeof pending->collect.key - 1);
  pending->collect.value.type = pmix::Type::boolean;
  pending->collect.value.boolean = true;
  auto owner = std::make_unique<std::shared_ptr<PendingFence>>(pending);
  const int32_t begun = fence_nb_(nullptr, 0, &pending->collect, 1, &end_fence, owner.get());
  if (begun == pmix::done_at_once) return;
  check(begun, "PMIx_Fence");
  // From now on the library owns it.
  static_cast<void>(owner.release());
  std::unique_lock<std::mutex> lock(pending->mutex);
  const bool ended =
      pending->changed.wait_for(lock, timeout, [&] { return pending->status.has_value(); });
  if (ended) return check(*pending->status, "PMIx_Fence");
  throw CommError(where_, "all processes of the job meet, to agree on an address of rank 0",
                  str("after ", std::chrono::duration<double>(timeout).count(), " s not all"),
                  str("look at the output of the others, or ", otherwise_));
}

std::string PmixClient::text_of(uint32_t rank, const std::string& key) const {
  const Held value = get(rank, key.c_str());
  if (value->type != pmix::Type::string || value->string == nullptr) fail_type(key);
  return value->string;
}

uint32_t PmixClient::number(uint32_t rank, const char* key) const {
  const Held value = get(rank, key);
  if (value->type == pmix::Type::uint16) return value->uint16;
  if (value->type != pmix::Type::uint32) fail_type(key);
  return value->uint32;
}

PmixClient::Held PmixClient::get(uint32_t rank, const char* key) const {
  pmix::Process process = self_;
  process.rank = rank;
  pmix::Value* value = nullptr;
  check(get_(&process, key, nullptr, 0, &value), str("PMIx_Get of ", key));
  if (value == nullptr) fail_type(key);
  return Held(value, &free_pmix_value);
}

void PmixClient::fail_type(const std::string& key) const {
  throw CommError(where_, "PMIx tells each process of its job",
                  str("PMIx_Get of ", key, " returned no such value"), otherwise_);
}

void PmixClient::load(const std::string& library) {
  std::string reason;
  for (const char* name : {"libpmix.so.2", "libpmix.so"}) {
    const std::string file = library.empty() ? name : library;
    // Its plug-ins look for its functions among those of the program.
    library_ = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library_ != nullptr) return;
    const char* const error = dlerror();
    if (reason.empty()) reason = error != nullptr ? error : "no reason given";
  }
  throw ConfigError(
      where_, "the processes of mpirun or srun find each other by PMIx, a library of theirs",
      one_line(reason, 200),
      str("install it (Debian: libpmix2), name its file by TESSERA_PMIX_LIBRARY, or ", otherwise_));
}

template <class Function>
void PmixClient::find(const char* name, Function& function) const {
  void* const address = dlsym(library_, name);
  if (address == nullptr) {
    throw ConfigError(where_, "the PMIx library is of version 3, 4 or 5", str("one without ", name),
                      str("name the file of another by TESSERA_PMIX_LIBRARY, or ", otherwise_));
  }
  function = reinterpret_cast<Function>(address);
}

void PmixClient::check(int32_t status, const std::string& call) const {
  if (status == pmix::success) return;
  const char* const text = error_string_(status);
  // The launcher forgets a process when its first program has ended.
  throw CommError(where_, "PMIx serves the first program in each process of the launcher",
                  str(call, ": ", one_line(text ? text : ""), " (", status, ")"), otherwise_);
}

}  // namespace tessera::detail
