#include <iostream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

#include "apps/common/run_app.hpp"
#include "apps/imdb/predict.hpp"
#include "apps/imdb/serve.hpp"
#include "apps/imdb/train.hpp"

namespace {

using namespace tessera;
using namespace tessera::detail;

constexpr const char* help =
    "Tells praise from blame in film reviews: the DTensor tutorial's model, trained on any mesh.\n"
    "Usage: imdb [train] [OPTIONS]                 train; without options: in all three schemes\n"
    "       imdb predict FOLDER [TEXT...]          label texts, or lines of the standard input\n"
    "       imdb serve FOLDER --port N [OPTIONS]   answer TensorFlow Serving's REST requests\n"
    "\n"
    "imdb train --export FOLDER writes what predict and serve take. Each command has a --help.\n";

int imdb_main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "--help" || command == "-h") {
    std::cout << help << std::flush;
    return 0;
  }
  if (command.empty() || command[0] == '-') return imdb::train_main(argc, argv);
  // The command takes the program's place among the arguments.
  if (command == "train") return imdb::train_main(argc - 1, argv + 1);
  if (command == "predict") return imdb::predict_main(argc - 1, argv + 1);
  if (command == "serve") return imdb::serve_main(argc - 1, argv + 1);
  const std::string meant = nearest(command, std::vector<std::string>{"train", "predict", "serve"});
  throw ConfigError("command line", "the command is train, predict or serve", in_quotes(command),
                    meant.empty() ? "see imdb --help" : "write " + meant);
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, imdb_main); }
