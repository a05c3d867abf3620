#include <tessera/framework/comm/distributed.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/cluster/coordination/reported_failure.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/comm/internal/build_id.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/internal/elastic_run.hpp>
#include <tessera/framework/comm/internal/make_engine.hpp>
#include <tessera/framework/comm/internal/process_communicator.hpp>
#include <tessera/framework/comm/internal/status.hpp>
#include <tessera/framework/mesh/internal/hosting.hpp>
#include <tessera/framework/mesh/internal/view.hpp>

namespace tessera {

using namespace detail;

namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

constexpr const char* where = "create_distributed_mesh";

/// Returns "seed (1 on ranks 0 and 2; 7 on rank 1)" for the keys whose values differ between ranks.
std::string differences(const std::vector<std::string>& texts) {
  std::vector<std::string> keys;
  std::map<std::string, std::vector<std::string>> values;  // by rank
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    for (const auto& fact : parse_json(texts[rank], str("rank ", rank))) {
      const auto key = fact.at(0).get<std::string>();
      const auto [at, fresh] = values.try_emplace(key, texts.size(), "none");
      if (fresh) keys.push_back(key);
      at->second[rank] = fact.at(1).get<std::string>();
    }
  }
  std::string all;
  for (const std::string& key : keys) {
    std::vector<std::string>& by_rank = values[key];
    if (std::count(by_rank.begin(), by_rank.end(), by_rank[0]) == std::ssize(by_rank)) continue;
    for (std::string& text : by_rank) text = one_line(text, 200);
    all += str(all.empty() ? "" : ", ", key, " (", group_by_text(by_rank), ")");
  }
  return all;
}

/// Throws ConfigError unless the facts are equal on all ranks; `all` is a Coordination or a
/// Communicator.
template <class Gatherer>
void compare(Gatherer& gatherer, const std::string& caller, const Facts& facts) {
  Json json = Json::array();
  for (const auto& [key, value] : facts) json.push_back({key, value});
  const std::string different = differences(gatherer.gather(caller, to_json_text(json, -1)));
  if (different.empty()) return;
  throw ConfigError(caller, "every process has the same program, options and data", different,
                    "start all processes with the same program, options and data");
}

/// The connections of this process to the others, which last until the process ends; in an elastic
/// run they are replaced in each generation.
struct Run {
  Cluster cluster;
  std::shared_ptr<ProcessCommunicator> communicator;
  DistributedOptions options;
  Facts facts;  ///< facts of the first mesh
  pid_t process = ::getpid();
};

std::mutex run_mutex;
/// Never destroyed: tensors on its meshes may outlive all static objects.
Run* current_run = nullptr;
/// Whether this process has reported that it failed.
std::atomic<bool> has_failed = false;

void leave_run() {
  // A forked child lacks the threads that leave() needs.
  if (!current_run || current_run->process != ::getpid()) return;
  ElasticRun* const elastic = ElasticRun::current();
  if (elastic && !has_failed && !elastic->leaves()) elastic->finish();
  current_run->communicator->leave();
}

/// The connections of a run, or of a generation of an elastic one.
struct Connections {
  std::shared_ptr<Coordination> coordination;
  std::shared_ptr<Engine> engine;
};

Connections connect(const Cluster& cluster, const DistributedOptions& options, Device first,
                    const Facts& facts) {
  const JobAccess access = job_access(cluster);
  std::function<bool()> given_up;
  if (ElasticRun* const elastic = ElasticRun::current()) {
    given_up = [elastic] { return elastic->given_up(); };
  }
  const std::shared_ptr<Coordination> coordination =
      Coordination::join({.rank = cluster.rank,
                          .size = cluster.size,
                          .address = cluster.address,
                          .port = cluster.port,
                          .job = cluster.job,
                          .access = access,
                          .connect_timeout = options.connect_timeout,
                          .timeout = options.timeout,
                          .given_up = given_up});
  try {
    // Before the engines connect: different programs would wait for each other in vain.
    compare(*coordination, where, facts);
    return {coordination, make_engine(coordination, options, access, first)};
  } catch (const std::exception& error) {
    // Nobody may wait here for processes that meet elsewhere.
    if (given_up) coordination->give_up(error.what());
    const std::string reason = coordination->reason(std::chrono::seconds(1));
    if (!reason.empty()) throw CommError(reason);
    coordination->report_failure(error.what());
    throw;
  }
}

std::shared_ptr<ProcessCommunicator> make_communicator(const Cluster& cluster,
                                                       const DistributedOptions& options,
                                                       Device first, const Facts& facts) {
  ElasticRun* const elastic = ElasticRun::current();
  const Connections made = connect(cluster, options, first, facts);
  auto communicator = std::make_shared<ProcessCommunicator>(
      made.coordination, made.engine,
      ProcessCommunicatorOptions{.always_check = options.always_check,
                                 .elastic = elastic != nullptr});
  if (elastic) elastic->attach(communicator);
  communicator->set_joining(elastic && elastic->generation() > 1);
  return communicator;
}

Run& run_of(const Cluster& cluster, const DistributedOptions& options, Device first,
            const Facts& facts) {
  const std::lock_guard<std::mutex> lock(run_mutex);
  if (current_run && ElasticRun::current()) {
    // Processes that join later make their meshes when the others train.
    if (current_run->facts == facts) return *current_run;
    throw ConfigError(where, "an elastic run has one mesh", "another one",
                      "pass the same dimensions and options each time");
  }
  if (current_run) {
    if (current_run->cluster.rank == cluster.rank && current_run->cluster.size == cluster.size) {
      compare(*current_run->communicator, where, facts);
      return *current_run;
    }
    throw ConfigError(where, "all meshes of a process belong to one cluster",
                      str("rank ", cluster.rank, " of ", cluster.size, " after rank ",
                          current_run->cluster.rank, " of ", current_run->cluster.size),
                      "pass the same options each time");
  }
  auto run = std::make_unique<Run>(
      Run{cluster, make_communicator(cluster, options, first, facts), options, facts});
  current_run = run.release();
  set_failure_reporter([&communicator = *current_run->communicator](const std::string& what) {
    has_failed = true;
    communicator.report_failure(what);
  });
  std::atexit(leave_run);
  return *current_run;
}

/// Returns the mesh's sizes, with -1 inferred from the number of devices of all processes.
MeshDims with_inferred_size(MeshDims dims, const DistributedOptions& options, int processes) {
  int64_t known = 1;
  int64_t* inferred = nullptr;
  for (auto& [name, size] : dims) {
    if (size == -1 && !inferred) {
      inferred = &size;
    } else {
      known *= std::max<int64_t>(1, size);
    }
  }
  if (!inferred) return dims;
  const int64_t all = options.devices.value_or(default_devices(options)) * processes;
  if (all % known != 0) {
    throw MeshError(where, str("the other sizes of ", to_string(dims), " divide the devices"),
                    str(all, " devices"), "give a number of devices that they divide");
  }
  *inferred = all / known;
  return dims;
}

/// Returns the number of GPUs for `count` devices of a process.
int64_t gpus_for(const DistributedOptions& options, int64_t count) {
  return (count + options.virtual_devices - 1) / options.virtual_devices;
}

/// Returns the devices of this process of a mesh, `count` of its own, on a hosting that is null for
/// a single process.
std::vector<Device> local_devices(const DistributedOptions& options, const Cluster& cluster,
                                  int64_t count, const Hosting* hosting) {
  if (device_type_of(options) == Device::Type::cpu) return virtual_cpus(count);
  if (options.virtual_devices < 1) {
    throw ConfigError(where, "each GPU has at least one device of the mesh",
                      str("virtual_devices ", options.virtual_devices), "pass 1 or more");
  }
  if (ElasticRun::current()) {
    // A process keeps its GPU, and holds a varying number of devices on it.
    gpu(cluster.local_rank);
    return std::vector<Device>(static_cast<size_t>(count),
                               {Device::Type::cuda, cluster.local_rank});
  }
  // Processes of one host divide its GPUs in rank order.
  const int64_t gpus = gpus_for(options, count), available = gpu_count();
  int64_t first = cluster.local_rank * gpus;
  if (hosting && !hosting->is_even()) {
    first = 0;
    for (int i = 1; i <= std::min(cluster.local_rank, cluster.rank); ++i) {
      first += gpus_for(options, std::ssize(hosting->devices_of(cluster.rank - i)));
    }
  }
  if (available > 0 && first + gpus > available) {
    const std::string of =
        cluster.size == 1 ? "" : str(" of process ", cluster.local_rank, " of this host");
    throw ConfigError(where, str("this host has ", available, available == 1 ? " GPU" : " GPUs"),
                      str(count, count == 1 ? " device" : " devices", of, " on GPUs ", first,
                          " to ", first + gpus - 1),
                      "use a smaller mesh, place several devices on each GPU (virtual_devices; "
                      "--virtual-devices of the applications), or use CPUs (--device cpu)");
  }
  std::vector<Device> devices;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = first + i / options.virtual_devices;
    devices.push_back({Device::Type::cuda, static_cast<int>(index)});
  }
  // Reports unusable GPUs now, and loads ATen's kernels before the first tensor.
  for (Device device : devices) gpu(device.index);
  return devices;
}

/// The devices of a mesh that a process hosts.
struct Part {
  std::vector<int64_t> ids;
  std::vector<Device> devices;
  std::shared_ptr<const Hosting> hosting;

  Mesh mesh(const MeshDims& dims, const std::string& name,
            const std::shared_ptr<ProcessCommunicator>& communicator) const {
    if (communicator->size() == 1) return create_mesh(dims, devices, name);
    return create_mesh_part(dims, ids, devices, communicator, name, hosting);
  }
};

Part part_of(const MeshDims& dims, const DistributedOptions& options, const Cluster& cluster) {
  Part part;
  part.hosting = default_hosting(dims, cluster.size);
  part.ids = part.hosting->devices_of(cluster.rank);
  part.devices = local_devices(options, cluster, std::ssize(part.ids), part.hosting.get());
  return part;
}

constexpr const char* processes_fact = "processes";

Facts facts_of(const MeshDims& dims, const DistributedOptions& options, const Cluster& cluster) {
  const auto bool_text = [](bool value) { return value ? "true" : "false"; };
  return {{"build", build_id()},
          {processes_fact, str(cluster.size)},
          {"mesh", to_string(dims)},
          {"device", device_type_of(options) == Device::Type::cpu ? "cpu" : "cuda"},
          {"virtual_devices", str(options.virtual_devices)},
          {"shared_memory", bool_text(options.shared_memory)},
          {"always_check", bool_text(options.always_check)}};
}

}  // namespace

Device::Type detail::device_type_of(const DistributedOptions& options) {
  return options.device_type.value_or(gpu_count() > 0 ? Device::Type::cuda : Device::Type::cpu);
}

int64_t detail::default_devices(const DistributedOptions& options) {
  if (device_type_of(options) == Device::Type::cpu) return 1;
  const int64_t gpus = process_count(options) == 1 ? std::max(gpu_count(), 1) : 1;
  return gpus * options.virtual_devices;
}

bool is_first_process(const Mesh& mesh) { return is_first_rank(mesh); }

void barrier(const Mesh& mesh, const std::string& name) { communicator_of(mesh).gather(name, ""); }

int process_count(const DistributedOptions& options) { return find_cluster(options.cluster).size; }

Mesh create_distributed_mesh(const MeshDims& requested, const DistributedOptions& options) {
  const Cluster cluster = find_cluster(options.cluster);
  if (cluster.type == TaskType::ps || cluster.type == TaskType::evaluator) {
    throw ConfigError(cluster.source, "only chief and worker tasks train", to_string(cluster.type),
                      "start this program on chief and workers only");
  }
  const MeshDims dims = with_inferred_size(requested, options, cluster.size);
  const bool elastic = ElasticRun::current() != nullptr;
  if (elastic && options.devices) {
    throw ConfigError(where, "the processes of an elastic run hold varying numbers of devices",
                      str(*options.devices, " devices of each"), "omit the number of devices");
  }
  int64_t size = 1;
  for (const auto& dim : dims) size *= dim.second;
  const auto check_devices = [&](int64_t count) {
    if (!options.devices || *options.devices == count) return;
    throw MeshError(where,
                    str("the mesh ", to_string(dims), " has ", count, " devices for rank ",
                        cluster.rank, " of ", cluster.size),
                    str(*options.devices, " devices"),
                    "omit the number of devices or change the mesh");
  };
  if (cluster.size == 1 && !elastic) {
    check_devices(size);
    return create_mesh(dims, local_devices(options, cluster, size, nullptr));
  }
  if (size < cluster.size) {
    throw MeshError(where, "each process has at least one device of the mesh",
                    str(cluster.size, " processes with mesh ", to_string(dims)),
                    "start fewer processes or use a larger mesh");
  }
  try {
    const Part part = part_of(dims, options, cluster);
    check_devices(std::ssize(part.ids));
    const Run& run =
        run_of(cluster, options, part.devices.front(), facts_of(dims, options, cluster));
    return part.mesh(dims, "", run.communicator);
  } catch (const CommError& error) {
    if (!elastic || current_run) throw;
    // Others are to meet before these have.
    ElasticRun& run = *ElasticRun::current();
    run.enter(run.wait_for_next(error));
  }
  return create_distributed_mesh(requested, options);
}

void detail::reconnect_elastic() {
  const std::lock_guard<std::mutex> lock(run_mutex);
  ElasticRun& elastic = *ElasticRun::current();
  Run& run = *current_run;
  run.communicator->disconnect();
  run.cluster = elastic.cluster();
  for (auto& [name, value] : run.facts) {
    if (name == processes_fact) value = str(run.cluster.size);
  }
  // The first device decides between CPUs and GPUs; a process keeps its GPU.
  const Device first = device_type_of(run.options) == Device::Type::cpu
                           ? Device{}
                           : Device{Device::Type::cuda, run.cluster.local_rank};
  const Connections made = connect(run.cluster, run.options, first, run.facts);
  run.communicator->reconnect(made.coordination, made.engine);
  elastic.attach(run.communicator);
}

Mesh detail::hosted_now(const Mesh& mesh) {
  const std::lock_guard<std::mutex> lock(run_mutex);
  const Part part = part_of(mesh.dims(), current_run->options, current_run->cluster);
  return part.mesh(mesh.dims(), mesh.name(), current_run->communicator)
      .view(fixed_coordinates(mesh));
}

void detail::check_same_on_all_ranks(const Mesh& mesh, const std::string& caller,
                                     const Facts& facts) {
  if (!mesh.is_local()) compare(communicator_of(mesh), caller, facts);
}

}  // namespace tessera
