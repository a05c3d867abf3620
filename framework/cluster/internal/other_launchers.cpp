#include <algorithm>
#include <iterator>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/internal/environment.hpp>

namespace tessera::detail {
namespace {

/// The variables of a launcher's processes; nullptr: it does not set that one.
struct Launcher {
  const char* size;
  const char* rank;
};

// MPICH, Intel MPI and Slurm's PMI; MVAPICH2; IBM Spectrum MPI; Flux; PMIx without a job; Cray.
constexpr Launcher launchers[] = {{"PMI_SIZE", "PMI_RANK"},
                                  {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
                                  {"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"},
                                  {"FLUX_JOB_SIZE", "FLUX_TASK_RANK"},
                                  {nullptr, "PMIX_RANK"},
                                  {nullptr, "PALS_RANKID"},
                                  {nullptr, "ALPS_APP_PE"}};

constexpr const char* separate_runs = "; for a run of its own in each: RANK=0 WORLD_SIZE=1";

/// Returns a variable's number, 0 if it is unset or none: other programs wrote it.
int64_t number_of(const Environment& variables, const char* name) {
  const std::string text = name ? variables.find(name).value_or("") : "";
  const bool digits =
      !text.empty() && text.size() < 10 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? std::stoll(text) : 0;
}

}  // namespace

void check_other_launchers(const Environment& variables, int processes) {
  const bool sized = std::any_of(std::begin(launchers), std::end(launchers), [&](const auto& one) {
    return number_of(variables, one.size) > 0;
  });
  for (const Launcher& launcher : launchers) {
    const int64_t size = number_of(variables, launcher.size);
    if (size > 1 && size != processes) {
      throw ConfigError(
          launcher.size, str("the processes of a launcher know each other, ", size, " of them"),
          processes == 1 ? "nothing that Tessera reads" : str(processes, " tasks of Slurm"),
          str("start them with launch or torchrun, or as sh -c 'RANK=$", launcher.rank,
              " WORLD_SIZE=$", launcher.size, " MASTER_ADDR=HOST exec PROGRAM', with the host of ",
              "rank 0", separate_runs));
    }
    const int64_t rank = number_of(variables, launcher.rank);
    if (sized || rank == 0 || processes > 1) continue;
    throw ConfigError(launcher.rank, "the processes of a launcher know each other",
                      str("rank ", rank, ", and nothing that Tessera reads"),
                      str("start them with launch or torchrun, or set RANK, WORLD_SIZE and "
                          "MASTER_ADDR",
                          separate_runs));
  }
}

}  // namespace tessera::detail
