#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/cluster/cluster.hpp>
#include <tessera/framework/mesh/mesh.hpp>

namespace tessera {

namespace detail {
class Communicator;
}  // namespace detail

/// How the processes of a run find each other, and their timeouts.
struct DistributedOptions {
  /// Cluster settings; they override the environment.
  ClusterFlags cluster = {};
  /// Devices of this process (default: an equal share of the mesh).
  std::optional<int64_t> devices = std::nullopt;
  /// Virtual CPUs or GPUs (default: GPUs if there are any).
  std::optional<Device::Type> device_type = std::nullopt;
  /// Devices of the mesh on each GPU. Like virtual CPUs, they share blocks of memory where they
  /// can.
  int64_t virtual_devices = 1;
  /// How long the first task waits for all processes to connect.
  std::chrono::milliseconds connect_timeout = std::chrono::minutes(5);
  /// How long the others wait for a process in a collective before they give it up.
  std::chrono::milliseconds timeout = std::chrono::minutes(2);
  /// Whether ranks compare every collective before they run it, instead of only in the first 20
  /// steps and in steps where the global batch's shape changes. In custom loops that do not call
  /// Communicator::begin_step() every collective is compared.
  bool always_check = false;
  /// Whether processes of one host exchange tensors through shared memory.
  bool shared_memory = true;
};

/// Creates a mesh over the devices of all processes of the run
/// (tf.experimental.dtensor.create_distributed_mesh). The devices of a process fill a box of the
/// mesh: n processes split the rows of its first dimension as evenly as they can, rank r taking
/// shard_interval(rows, n, r), so that 4 rows on 3 processes are 1, 1 and 2. More processes than
/// rows split the dimensions after it as well, in a grid. The first call connects the processes and
/// compares their builds, world sizes and meshes; later calls, for other meshes, use the same
/// connections. If find_cluster() finds a single process, that process holds all devices. One size
/// may be -1: it is inferred from `devices`, whose default is then all GPUs for a single process
/// and one device for each of several.
/// Collective. Throws ConfigError for an invalid cluster description, processes that differ and
/// missing GPUs; CommError if a process does not connect; MeshError if no such grid has as many
/// boxes as there are processes, naming numbers of processes that fit.
Mesh create_distributed_mesh(const MeshDims& dims, const DistributedOptions& options = {});

/// Whether this process is the first one of the mesh, which prints and writes for all.
bool is_first_process(const Mesh& mesh);

/// Returns once every process of the mesh has called it (tf.experimental.dtensor.barrier). `name`
/// appears in the errors of the others if one does not. Collective. Throws CommError.
void barrier(const Mesh& mesh, const std::string& name = "barrier");

/// Returns the number of processes that create_distributed_mesh() would span.
int process_count(const DistributedOptions& options = {});

namespace detail {

/// Returns the device type of the options, or its default.
Device::Type device_type_of(const DistributedOptions& options);

/// Returns the devices of each process if neither options nor mesh determine them: one CPU, all
/// GPUs of a single process or one GPU of each of several; times virtual_devices for GPUs.
int64_t default_devices(const DistributedOptions& options);

/// Connects the members of the newest generation of an elastic run, in place of those of the one
/// before. Collective among them. Throws CommError if meanwhile others are to meet.
void reconnect_elastic();

/// Returns the mesh with the devices that this process hosts in its generation of an elastic run.
Mesh hosted_now(const Mesh& mesh);

/// Compares facts that must be equal on every process of the mesh, such as model and seed. Throws
/// ConfigError naming `caller` and the keys that differ, with their values and ranks; the same
/// error on every rank. Collective.
void check_same_on_all_ranks(const Mesh& mesh, const std::string& caller,
                             const std::vector<std::pair<std::string, std::string>>& facts);

}  // namespace detail

}  // namespace tessera
