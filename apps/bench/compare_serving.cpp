#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/cluster/launcher/launcher.hpp>
#include <tessera/tessera.hpp>

#include "apps/bench/compare.hpp"
#include "apps/bench/line_process.hpp"
#include "apps/bench/models.hpp"
#include "apps/bench/networks.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

constexpr int64_t served_pixels = 96;
const std::vector<std::string> connection_counts = {"1", "16"};

/// A model that is served, and a row of its requests.
struct ServedWork {
  std::string name;     ///< name of the peers' network
  std::string title;    ///< title in the table
  std::string threads;  ///< threads per call, at which both servers are fastest
  ModelHandle model;
  at::Tensor row;
};

std::vector<ServedWork> served_works() {
  const Sequential mlp = mlp_model({});
  mlp.build({-1, mlp_sizes.front()});
  const at::Tensor numbers = at::rand({1, mlp_sizes.front()});
  const at::Tensor image = at::randint(256, {1, served_pixels, served_pixels, 3}, at::kLong);
  return {{"mlp", "serving an MLP", "1", mlp, numbers},
          {"resnet50", "serving ResNet-50, 96 x 96", "2", resnet50(served_pixels), image}};
}

/// Returns a tensor as lists of integers, or of numbers with four digits.
Json as_lists(const at::Tensor& tensor) {
  if (tensor.dim() > 0) {
    Json list = Json::array();
    for (const at::Tensor& row : tensor.unbind()) list.push_back(as_lists(row));
    return list;
  }
  if (!tensor.is_floating_point()) return tensor.item<int64_t>();
  return std::round(tensor.item<double>() * 1e4) / 1e4;
}

/// Exports the model to FOLDER/NAME, and writes a request and the shape of a row for the peers.
/// Returns the path without extensions.
std::string share_served(const CompareRun& run, const ServedWork& work) {
  std::string path = run.folder + "/" + work.name;
  export_model(work.model, path, {.sample = work.row.to(at::kFloat)});
  write_file_atomically(path + ".request", to_json_text({{"instances", as_lists(work.row)}}, -1));
  Shape row = work.row.sizes().vec();
  row.erase(row.begin());
  write_file_atomically(path + ".json", to_json_text({{"row", row}}, -1));
  return path;
}

/// A server that is measured: it answers with its "port".
struct StartedServer {
  Contender contender;
  std::unique_ptr<LineProcess> process;
  int64_t port;
};

/// Starts the servers; a peer that fails is left out.
std::vector<StartedServer> start_servers(const std::vector<Contender>& contenders) {
  std::vector<StartedServer> servers;
  for (const Contender& contender : contenders) {
    try {
      auto process = std::make_unique<LineProcess>(contender.command);
      const auto port = process->run(1).at("port").get<int64_t>();
      servers.push_back({contender, std::move(process), port});
    } catch (const ConfigError& error) {
      if (servers.empty()) throw;
      std::cerr << "left out: " << contender.who << ": " << error.what() << std::endl;
    }
  }
  return servers;
}

/// The times of a server at a number of connections, one per round.
struct ServingFigures {
  Figure request;  ///< seconds of a round divided by its requests
  Figure slowest;  ///< 99th percentile of the latencies
};

/// Puts load on a server by wrk for some seconds, on one thread, and adds its figures.
void put_load(const CompareRun& run, const StartedServer& server, const std::string& data,
              const std::string& connections, const std::string& seconds, ServingFigures* figures) {
  const std::string url = str("http://127.0.0.1:", server.port, "/v1/models/model:predict");
  const Json answer =
      LineProcess({"wrk", "-t1", "-c" + connections, "-d" + seconds + "s", "--timeout", "60s", "-s",
                   run.peers.folder() + "/load.lua", url, "--", data + ".request"})
          .answer();
  if (const auto failed = answer.at("failed").get<int64_t>()) {
    throw ConfigError("bench", "every request must be answered with predictions",
                      str(failed, " other answers of ", server.contender.who),
                      "look at its output");
  }
  if (!figures) return;
  figures->request.rounds.push_back(1e3 / answer.at("per_second").get<double>());
  figures->slowest.rounds.push_back(answer.at("p99").get<double>());
}

void compare_server(CompareRun& run, const ServedWork& work) {
  const std::string data = share_served(run, work);
  std::vector<Contender> all = {
      own_contender("own", "ours", {"serving", "--data", data, "--threads", work.threads})};
  for (const std::string processes : {"1", "2"}) {
    run.add_peer(all, processes, "uvicorn", str(", processes: ", processes), "onnx_server.py",
                 {work.name, data, work.threads, processes});
  }
  const std::vector<StartedServer> servers = start_servers(all);
  for (const std::string& connections : connection_counts) {
    std::vector<ServingFigures> figures;
    for (const StartedServer& server : servers) {
      const std::string& who = server.contender.who;
      figures.push_back({{.who = who}, {.who = who + ", p99"}});
      put_load(run, server, data, connections, "2", nullptr);
    }
    for (int64_t round = 0; round < run.rounds; ++round) {
      for (size_t i = 0; i < servers.size(); ++i) {
        put_load(run, servers[i], data, connections, "4", &figures[i]);
      }
    }
    const std::string title = work.title + ", connections: " + connections;
    for (Figure ServingFigures::*const kind :
         {&ServingFigures::request, &ServingFigures::slowest}) {
      const Figure& own = figures[0].*kind;
      run.comparison.add_own(title, own);
      for (size_t i = 1; i < servers.size(); ++i) {
        run.comparison.add_other(figures[i].*kind, ratio(own, figures[i].*kind, 1.0));
      }
    }
  }
}

}  // namespace

void compare_serving(CompareRun& run) {
  try {
    find_program("wrk", "/");
  } catch (const ConfigError&) {
    std::cerr << "left out: serving: it needs wrk in PATH, as from apt-get install wrk"
              << std::endl;
    return;
  }
  for (const ServedWork& work : served_works()) compare_server(run, work);
}

}  // namespace tessera::bench
