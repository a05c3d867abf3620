#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <tessera/framework/cluster/internal/pmix_abi.hpp>

namespace tessera::detail {

/// This process as a client of its launcher (mpirun, srun --mpi=pmix): its place in the job, and
/// texts that the job's processes leave for each other. Loads libpmix when it is constructed.
class PmixClient {
 public:
  /// Loads `library` (empty: libpmix.so.2, else libpmix.so) and connects to the launcher, which
  /// calls the job `job`. `where`: the variable that told of the launcher; `otherwise`: how to do
  /// without PMIx. Both are for errors. Throws ConfigError if the library is missing, and CommError
  /// naming PMIx's function if one fails, as all members do.
  PmixClient(const std::string& library, const std::string& job, std::string where,
             std::string otherwise);
  /// Tells the launcher that this process is no client any more, so that it may end in any way.
  ~PmixClient();
  PmixClient(const PmixClient&) = delete;
  PmixClient& operator=(const PmixClient&) = delete;

  uint32_t rank() const { return self_.rank; }
  /// Returns a fact about the whole job.
  uint32_t job_number(const char* key) const;
  std::string job_text(const char* key) const;
  /// Returns a fact about this process.
  uint32_t own_number(const char* key) const;

  /// Leaves a text, which the others can read after the next fence().
  void leave(const std::string& key, const std::string& text);
  /// Waits until all processes of the job are here. The launchers do not all heed PMIx' own
  /// timeout.
  void fence(std::chrono::milliseconds timeout);
  /// Returns the text that a rank left.
  std::string text_of(uint32_t rank, const std::string& key) const;

 private:
  void load(const std::string& library);
  template <class Function>
  void find(const char* name, Function& function) const;
  void check(int32_t status, const std::string& call) const;
  using Held = std::unique_ptr<pmix::Value, void (*)(pmix::Value*)>;
  Held get(uint32_t rank, const char* key) const;
  [[noreturn]] void fail_type(const std::string& key) const;
  uint32_t number(uint32_t rank, const char* key) const;

  std::string where_, otherwise_;
  void* library_ = nullptr;
  pmix::Process self_ = {};
  pmix::Init init_ = nullptr;
  pmix::Finalize finalize_ = nullptr;
  pmix::Put put_ = nullptr;
  pmix::Commit commit_ = nullptr;
  pmix::FenceNb fence_nb_ = nullptr;
  pmix::Get get_ = nullptr;
  pmix::ErrorString error_string_ = nullptr;
};

}  // namespace tessera::detail
