#include <iostream>

#include "apps/common/run_app.hpp"
#include "apps/imdb/predict.hpp"
#include "apps/imdb/serve.hpp"
#include "apps/imdb/train.hpp"

namespace {

using namespace tessera;

constexpr const char* help =
    "Classifies film reviews as positive or negative: the DTensor tutorial's model, on any mesh.\n"
    "Usage: imdb [train] [OPTIONS]                 train; without options: in all three schemes\n"
    "       imdb predict FOLDER [TEXT...]          label texts, or lines of the standard input\n"
    "       imdb serve FOLDER --port N [OPTIONS]   answer TensorFlow Serving's REST requests\n"
    "\n"
    "imdb train --export FOLDER writes the model for predict and serve. Each has a --help.\n";

int imdb_main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "--help" || command == "-h") {
    std::cout << help << std::flush;
    return 0;
  }
  if (command.empty() || command[0] == '-') return imdb::train_main(argc, argv);
  // Shift the arguments: the command becomes argv[0].
  if (command == "train") return imdb::train_main(argc - 1, argv + 1);
  if (command == "predict") return imdb::predict_main(argc - 1, argv + 1);
  if (command == "serve") return imdb::serve_main(argc - 1, argv + 1);
  app::fail_at_command("imdb", command, {"train", "predict", "serve"});
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, imdb_main); }
