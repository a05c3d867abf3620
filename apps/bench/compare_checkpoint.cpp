#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/checkpoint.hpp>
#include <tessera/tessera.hpp>

#include "apps/bench/compare.hpp"
#include "apps/bench/line_process.hpp"
#include "apps/bench/timing.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

namespace fs = std::filesystem;

constexpr int64_t weight_count = 8;
constexpr int64_t weight_elements = int64_t{1} << 25;
constexpr double bytes = 4.0 * weight_count * weight_elements;
/// Minimum save speed relative to dd, and minimum load speed in bytes per second.
constexpr double min_save_speed = 0.7, min_load_speed = 1e9;

std::vector<Variable> make_weights() {
  std::vector<Variable> weights;
  for (int64_t i = 0; i < weight_count; ++i) {
    weights.emplace_back("part" + std::to_string(i),
                         stateless_uniform({weight_elements}, Seed{i, 1}));
  }
  return weights;
}

/// Writes the weights' bytes to one file, which stays in the page cache.
void write_plain(const std::vector<Variable>& weights, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  for (const Variable& weight : weights) {
    const at::Tensor full_tensor = weight.value().full();
    file.write(static_cast<const char*>(full_tensor.const_data_ptr()),
               static_cast<std::streamsize>(full_tensor.nbytes()));
  }
}

/// Returns the milliseconds of work that writes `path`, after removing it and flushing all other
/// writes.
template <class Work>
double written(const std::string& path, const Work& work) {
  fs::remove_all(path);
  ::sync();
  return 1e3 * seconds_of(work);
}

void copy(const std::string& from, const std::string& to) {
  { const LineProcess dd({"dd", "if=" + from, "of=" + to, "bs=1M", "conv=fsync", "status=none"}); }
  std::error_code failure;
  if (fs::file_size(to, failure) == static_cast<uintmax_t>(bytes)) return;
  throw FileError(to, "dd writes as many bytes as a checkpoint", "fewer",
                  "name a folder with 3 GB of space: --folder");
}

}  // namespace

void compare_checkpoint(CompareRun& run) {
  const std::vector<Variable> weights = make_weights();
  const std::string saved = run.folder + "/saved";
  const std::string source = run.folder + "/bytes", copied = run.folder + "/copied";
  write_plain(weights, source);
  Checkpoint checkpoint(weights);
  Figure save{"ours, to disk"}, dd{"dd conv=fsync of the same bytes"};
  Figure load{"ours, from the page cache, with checksums"};
  std::vector<double> speeds;
  for (int64_t round = 0; round < run.rounds; ++round) {
    save.rounds.push_back(written(saved, [&] { checkpoint.save(saved); }));
    load.rounds.push_back(1e3 * seconds_of([&] { checkpoint.restore(saved); }));
    dd.rounds.push_back(written(copied, [&] { copy(source, copied); }));
    speeds.push_back(dd.rounds.back() / save.rounds.back());
  }
  run.comparison.add_own("checkpoint of 1 GB, save", save);
  run.comparison.add_other(dd, {median(speeds), Bar{min_save_speed, false}, "of its speed"});
  run.comparison.add_own(
      "checkpoint of 1 GB, load", load,
      Verdict{bytes / load.least() / 1e6, Bar{min_load_speed / 1e9, false}, "GB/s"});
  for (const std::string& path : {saved, source, copied}) fs::remove_all(path);
}

}  // namespace tessera::bench
