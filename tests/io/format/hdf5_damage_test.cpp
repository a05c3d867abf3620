#include <tessera/framework/io/format/hdf5_file.hpp>

#include <atomic>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/rectangle_runs.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/hdf5_cases.hpp"

namespace hdf5_damage_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// More than any dataset of these files has, whatever shape the damage makes.
constexpr uint64_t max_bytes = uint64_t{1} << 24;

/// Returns what is wrong with how a file is read, or "" if it is read, or refused in one line that
/// names it.
std::string fault_of(const std::string& path, std::atomic<int>& refused) {
  try {
    const Hdf5File file(path);
    for (const Hdf5Dataset& dataset : file.datasets()) {
      if (dataset.dtype.empty() || bytes_of(dataset, path) > max_bytes) continue;
      std::string data(bytes_of(dataset, path), '\0');
      file.read(dataset, full_rectangle(dataset.shape), std::as_writable_bytes(std::span(data)));
    }
    return "";
  } catch (const FileError& error) {
    ++refused;
    const std::string line = error.what();
    const bool good =
        line.starts_with("[" + path + "] ") && line.size() < 1000 && line == one_line(line, 1000);
    return good ? "" : line;
  } catch (const std::exception& error) {
    return str("no FileError: ", error.what());
  }
}

struct Damage {
  int refused = 0;
  std::vector<std::string> faults;
};

/// Reads `count` files made by `bytes_of_case`. Each starts a process, which takes 8 ms; a few send
/// the HDF5 library into an endless loop, which is ended after 3 s.
Damage damage(int count, const std::function<std::string(int)>& bytes_of_case) {
  const test::TempFolder folder;
  std::atomic<int> next = 0, refused = 0;
  std::mutex mutex;
  Damage damage;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, path = std::string(folder / str(thread, ".h5"))] {
      for (int i = next++; i < count; i = next++) {
        test::write_file(path, bytes_of_case(i));
        const std::string fault = fault_of(path, refused);
        if (fault.empty()) continue;
        const std::lock_guard lock(mutex);
        damage.faults.push_back(str("case ", i, ": ", fault));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  damage.refused = refused;
  return damage;
}

/// Changes every byte to each of `values` other values.
Damage flip_all(const std::string& bytes, size_t values) {
  return damage(static_cast<int>(bytes.size() * values), [&](int i) {
    std::string changed = bytes;
    const size_t at = static_cast<size_t>(i) / values;
    const int masks[] = {1 << at % 8, 0xff, 1 << (at + 3) % 8, 0x80};
    const size_t mask = (at + static_cast<size_t>(i) % values) % std::size(masks);
    changed[at] = static_cast<char>(changed[at] ^ masks[mask]);
    return changed;
  });
}

Damage truncate_all(const std::string& bytes) {
  return damage(static_cast<int>(bytes.size()),
                [&](int i) { return bytes.substr(0, static_cast<size_t>(i)); });
}

/// Applies one to six mutations: a byte, an eight-byte number, a run copied over another, a
/// truncation.
std::string mutated(std::string bytes, std::mt19937& random) {
  const auto below = [&](size_t end) { return random() % std::max<size_t>(end, 1); };
  for (size_t n = 1 + below(6); n > 0 && bytes.size() > 16; --n) {
    const size_t at = below(bytes.size() - 8);
    switch (below(8)) {
      case 0: {
        constexpr uint64_t numbers[] = {
            0, 1, 0xff, 0x7fffffff, 0xffffffff, uint64_t{1} << 40, uint64_t{1} << 63, ~uint64_t{0}};
        const uint64_t number = numbers[below(8)];
        for (size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<char>(number >> (8 * i));
        break;
      }
      case 1: {
        const size_t from = below(bytes.size() - 8);
        const size_t size = below(std::min<size_t>(64, bytes.size() - std::max(at, from)));
        bytes.replace(at, size, bytes.substr(from, size));
        break;
      }
      case 2:
        if (below(8) == 0) bytes.resize(at);
        break;
      default:
        bytes[at] = static_cast<char>(random());
    }
  }
  return bytes;
}

Damage mutate(const std::vector<std::string>& names, int count) {
  std::vector<std::string> files;
  for (const std::string& name : names) files.push_back(test::hdf5_case("good", name).bytes);
  return damage(count, [&](int i) {
    std::mt19937 random(static_cast<uint32_t>(i));
    return mutated(files[static_cast<size_t>(i) % files.size()], random);
  });
}

const std::vector<std::string> every_kind{
    "contiguous", "gzip and shuffle", "latest",     "attributes",       "compact",
    "fletcher32", "of every type",    "many links", "scale and offset", "links in their order"};

}  // namespace

TEST_CASE("any changed byte of an HDF5 file is read or refused") {
  // The smallest file with a compressed dataset; the nightly run has the others.
  const std::string bytes = test::hdf5_case("good", "latest").bytes;
  CHECK(bytes.size() == 1383);
  const Damage damage_found = flip_all(bytes, 1);
  CHECK(damage_found.faults == std::vector<std::string>{});
  // Superblock and headers of the latest format have checksums, data does not.
  CHECK(damage_found.refused > 600);
}

TEST_CASE("an HDF5 file is refused at every length that is too short") {
  const std::string bytes = test::hdf5_case("good", "contiguous").bytes;
  const Damage damage_found = truncate_all(bytes);
  CHECK(damage_found.faults == std::vector<std::string>{});
  CHECK(damage_found.refused == static_cast<int>(bytes.size()));
}

TEST_CASE("2,000 mutated HDF5 files are read or refused") {
  const Damage damage_found = mutate(every_kind, 2000);
  CHECK(damage_found.faults == std::vector<std::string>{});
  CHECK(damage_found.refused > 200);
  CHECK(damage_found.refused < 2000);
}

TEST_CASE("any changed byte and any length of HDF5 files of every kind", "[nightly]") {
  for (const std::string& name : every_kind) {
    CAPTURE(name);
    const std::string bytes = test::hdf5_case("good", name).bytes;
    CHECK(flip_all(bytes, 4).faults == std::vector<std::string>{});
    CHECK(truncate_all(bytes).faults == std::vector<std::string>{});
  }
}

TEST_CASE("100,000 mutated HDF5 files are read or refused", "[nightly]") {
  CHECK(mutate(every_kind, 100000).faults == std::vector<std::string>{});
}

}  // namespace hdf5_damage_test
