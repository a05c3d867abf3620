#include "apps/common/profiling.hpp"

#include <filesystem>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/cluster.hpp>

#include "apps/common/processes.hpp"

namespace tessera::app {

using namespace detail;

namespace {

/// Returns the path of a process's trace; FILE.json itself if there is only one process.
std::string path_of(const std::string& file, const Cluster& cluster) {
  if (cluster.size == 1 && cluster.tasks.empty()) return file;
  const bool trains = cluster.type == TaskType::chief || cluster.type == TaskType::worker;
  const std::string who = trains ? "rank" : to_string(cluster.type);
  const std::filesystem::path path(file);
  const std::string name =
      str(path.stem().string(), "-", who, "-", cluster.rank, path.extension().string());
  return (path.parent_path() / name).string();
}

}  // namespace

Profiling::Profiling(const CommonOptions& options) {
  if (options.profile.empty()) return;
  path_ = path_of(options.profile, find_cluster(distributed_options(options).cluster));
  profile_.emplace();
}

void Profiling::stop() {
  if (profile_) profile_->stop();
}

std::string Profiling::finish() {
  if (!profile_) return "";
  stop();
  profile_->save(path_);
  const std::string table = profile_->table();
  profile_.reset();
  return str("\n", table, "trace: ", path_, " (open it in https://ui.perfetto.dev)\n");
}

}  // namespace tessera::app
