#include <iostream>
#include <string>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

#include "apps/bench/bench.hpp"
#include "apps/common/run_app.hpp"

namespace {

using namespace tessera;
using namespace tessera::detail;

constexpr const char* help_text =
    R"(Times Tessera on one device and on several virtual devices of this machine.

Usage: bench [compare|ops|step|text|data|generate|comm|processes|parameter-server] [OPTIONS]

  compare  Tessera compared with PyTorch, TensorFlow, JAX and Keras, with --python PATH,...
  ops   every registered operation on its samples
  step  a training step of the MNIST guide's MLP (784-700-500-10, batch 128, Adam)
  text  TextVectorization on IMDB's reviews: learning a vocabulary, tf-idf, batches
  data  DataPipeline: map on threads, and how long training waits for data
  generate  a token of a small GPT, behind short and long texts
  comm  all-reduces over 2 and 4 processes, compared with Gloo's own
  processes  the step on several processes, compared with PyTorch's DDP by --torch PYTHON
  parameter-server  fit with parameter servers and several numbers of workers

Without a command: ops and step, with their defaults. `bench ops --help` lists the options.
)";

int run_bench(int argc, char** argv) {
  if (argc < 2) {
    bench::bench_ops(argc, argv);
    std::cout << "\n";
    return bench::bench_step(argc, argv);
  }
  const std::string command = argv[1];
  if (command == "compare") return bench::bench_compare(argc - 1, argv + 1);
  if (command == "compare-work") return bench::compare_work(argc - 1, argv + 1);
  if (command == "compare-nothing") return bench::compare_nothing();
  if (command == "ops") return bench::bench_ops(argc - 1, argv + 1);
  if (command == "step") return bench::bench_step(argc - 1, argv + 1);
  if (command == "text") return bench::bench_text(argc - 1, argv + 1);
  if (command == "data") return bench::bench_data(argc - 1, argv + 1);
  if (command == "generate") return bench::bench_generate(argc - 1, argv + 1);
  if (command == "comm") return bench::bench_comm(argc - 1, argv + 1);
  if (command == "processes") return bench::bench_processes(argc - 1, argv + 1);
  if (command == "process-steps") return bench::process_steps(argc - 1, argv + 1);
  if (command == "parameter-server") return bench::bench_parameter_server(argc - 1, argv + 1);
  if (command == "parameter-server-task") return bench::parameter_server_task(argc - 1, argv + 1);
  if (command == "--help" || command == "-h") {
    std::cout << help_text;
    return 0;
  }
  throw ConfigError("command line", "the command must be known", in_quotes(command),
                    "see bench --help");
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, run_bench); }
