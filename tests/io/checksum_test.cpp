// The checksums of weights: the CRC-32 of an archive's members, and those that Tessera adds to HDF5
// and safetensors files.
#include <tessera/tessera.hpp>

#include <algorithm>
#include <map>
#include <span>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/checksum.hpp>
#include <tessera/framework/io/format/hdf5_file.hpp>
#include <tessera/framework/io/format/rectangle_runs.hpp>
#include <tessera/framework/io/format/safetensors.hpp>
#include <tessera/framework/io/format/zip_archive.hpp>
#include <tessera/framework/io/keras/keras_checksum.hpp>
#include <tessera/framework/io/load_model.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"
#include "tests/support/hdf5_cases.hpp"
#include "tests/support/seed_scope.hpp"
#include "tests/support/thread_communicator.hpp"

namespace checksum_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

ModelHandle small_model(int64_t seed = 0) {
  const test::SeedScope scope(seed);
  return Sequential({Input({4}), Dense(3, {.activation = "relu", .name = "hidden"}),
                     Dense(2, {.name = "score"})});
}

bool same_weights(const ModelHandle& a, const ModelHandle& b) {
  const std::vector<at::Tensor> left = a->get_weights(), right = b->get_weights();
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return x.equal(y); });
}

std::string flipped(std::string bytes, size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
  return bytes;
}

/// Returns the positions of the data of all datasets of an HDF5 file.
std::vector<size_t> data_positions(const Hdf5File& file) {
  std::vector<size_t> positions;
  for (const Hdf5Dataset& dataset : file.datasets()) {
    for (uint64_t i = 0; i < bytes_of(dataset, file.path()); ++i) {
      positions.push_back(*dataset.offset + i);
    }
  }
  return positions;
}

/// Returns the positions of every `step`-th byte of [begin, end), and of the extra ones from
/// `begin` on.
std::vector<size_t> positions_in(size_t begin, size_t end, size_t step,
                                 const std::vector<size_t>& extra) {
  std::vector<size_t> positions;
  for (size_t at = begin; at < end; at += step) positions.push_back(at);
  for (const size_t at : extra) positions.push_back(begin + at);
  return positions;
}

}  // namespace

TEST_CASE("a flipped bit of an archive's weights is found before the model is changed") {
  const test::TempFolder folder;
  small_model().save(folder / "x.keras");
  const std::string bytes = test::read_file(folder / "x.keras");
  const ZipArchive archive(folder / "x.keras");
  const ZipMember& weights = *archive.find("model.weights.h5");
  const Hdf5File file(archive.file(), {weights.offset, weights.bytes}, "x");
  const std::string path = folder / "bad.keras";
  size_t by_checksum = 0, count = 0;
  for (const size_t at :
       positions_in(weights.offset, weights.offset + weights.bytes, 499, data_positions(file))) {
    CAPTURE(at);
    test::write_file(path, flipped(bytes, at));
    const std::string line = test::error_line([&] { load_model(path); });
    CHECK_THAT(line, StartsWith("[" + path + "] "));
    by_checksum += line.find("\"model.weights.h5\" has the CRC-32") != std::string::npos;
    ++count;
  }
  // The HDF5 library refuses some before.
  CHECK(by_checksum > count / 2);
  CHECK(same_weights(load_model(folder / "x.keras"), small_model()));
}

TEST_CASE("a flipped bit of the data of a weights file is found, and nothing is changed") {
  const test::TempFolder folder;
  const std::string path = folder / "bad.weights.h5";
  small_model().save_weights(path);
  const std::string bytes = test::read_file(path);
  const ModelHandle other = small_model(7), untouched = small_model(7);
  for (const size_t at : data_positions(Hdf5File(path))) {
    CAPTURE(at);
    test::write_file(path, flipped(bytes, at));
    CHECK_THAT(test::error_line([&] { other.load_weights(path); }),
               StartsWith("[" + path + "] the content has the checksum in the attribute xxh128"));
  }
  CHECK(same_weights(other, untouched));
  // Other bytes are free space, or what the library ignores, or the structure.
  for (size_t at = 0; at < bytes.size(); at += 151) {
    CAPTURE(at);
    test::write_file(path, flipped(bytes, at));
    const ModelHandle model = small_model(7);
    const std::string line = test::error_line([&] { model.load_weights(path); });
    CHECK(same_weights(model, line == "no error" ? small_model() : untouched));
  }
}

TEST_CASE("the checksum of a weights file does not depend on the mesh, nor on who verifies it") {
  const test::TempFolder folder;
  const auto model_on = [](const Mesh& mesh) {
    const test::SeedScope scope(0);
    // Kernels of several chunks of a MiB.
    const ModelHandle model = Sequential({Input({768}), Dense(1536), Dense(300)});
    LayoutMap layouts(mesh);
    layouts[".*/kernel"] = {"model", unsharded};
    model->place_weights(layouts);
    return model;
  };
  const ModelHandle one = model_on(create_mesh({{"model", 1}}, virtual_cpus(1)));
  one.save_weights(folder / "one.weights.h5");
  one.save(folder / "one.keras");
  const auto damaged = [](const std::string& path, const std::string& to, size_t at) {
    test::write_file(to, flipped(test::read_file(path), at));
  };
  const Hdf5File file(folder / "one.weights.h5");
  const std::vector<size_t> data = data_positions(file);
  damaged(folder / "one.weights.h5", folder / "first.weights.h5", data.front());
  damaged(folder / "one.weights.h5", folder / "last.weights.h5", data.back());
  const ZipArchive archive(folder / "one.keras");
  const ZipMember& member = *archive.find("model.weights.h5");
  damaged(folder / "one.keras", folder / "first.keras", member.offset + data.front());
  damaged(folder / "one.keras", folder / "last.keras", member.offset + member.bytes - 1);
  CHECK_NOTHROW(test::run_ranks(3, [&](int, const std::shared_ptr<Communicator>& communicator) {
    const ModelHandle model = model_on(test::rank_mesh({{"model", 3}}, communicator));
    model.load_weights(folder / "one.weights.h5");
    model.load_weights(folder / "one.keras");
    model.save_weights(folder / "three.weights.h5");
    for (const char* name : {"first.weights.h5", "last.weights.h5", "first.keras", "last.keras"}) {
      const std::string line = test::error_line([&] { model.load_weights(folder / name); });
      test::expect(line.find(std::string(name) + "] ") != std::string::npos, line);
      test::expect(line.find("the file is damaged") != std::string::npos, line);
    }
  }));
  CHECK(test::read_file(folder / "three.weights.h5") == test::read_file(folder / "one.weights.h5"));
  const Hdf5File three(folder / "three.weights.h5");
  CHECK(three.find_group("")->attributes[hdf5_checksum_name] ==
        Json(shared_hdf5_checksum(default_mesh(), file)));
}

TEST_CASE("folders and files in several parts have checksums, and files without one load") {
  const test::TempFolder folder;
  const ModelHandle model = small_model(), other = small_model(7);
  const auto damage = [](const std::string& path) {
    const size_t at = data_positions(Hdf5File(path)).back();
    test::write_file(path, flipped(test::read_file(path), at));
  };
  model.save(folder / "m", {.zipped = false});
  damage(folder / "m/model.weights.h5");
  CHECK_THROWS_WITH(load_model(folder / "m"), Contains("m/model.weights.h5] the content has the"));
  model.save_weights(folder / "x.weights.json", {.max_shard_size = 6.5e-8});
  other.load_weights(folder / "x.weights.json");
  CHECK(same_weights(other, model));
  damage(folder / "x_00001.weights.h5");
  CHECK_THROWS_WITH(other.load_weights(folder / "x.weights.json"),
                    Contains("x_00001.weights.h5] the content has the checksum"));

  const std::string path = folder / "x.weights.h5";
  model.save_weights(path);
  std::string bytes = test::read_file(path);
  const size_t name = bytes.find(hdf5_checksum_name);
  REQUIRE(name != std::string::npos);
  bytes[name] = 'y';
  test::write_file(path, flipped(bytes, data_positions(Hdf5File(path)).front()));
  CHECK_NOTHROW(other.load_weights(path));
  CHECK_FALSE(same_weights(other, model));
}

TEST_CASE("chunks of contiguous and of compressed data are the bytes that read() returns") {
  const test::TempFolder folder;
  for (const char* name : {"contiguous", "gzip and shuffle", "scale and offset"}) {
    CAPTURE(name);
    test::write_file(folder / "x.h5", test::hdf5_case("good", name).bytes);
    const Hdf5File file(folder / "x.h5");
    for (const Hdf5Dataset& dataset : file.datasets()) {
      if (dataset.dtype.empty()) continue;
      CAPTURE(dataset.path);
      std::string all(bytes_of(dataset, "x"), '?');
      file.read(dataset, full_rectangle(dataset.shape), std::as_writable_bytes(std::span(all)));
      constexpr uint64_t chunk = 7;
      const uint64_t chunks = (all.size() + chunk - 1) / chunk;
      for (uint64_t begin = 0; begin < chunks; begin += 2) {
        const uint64_t end = std::min(begin + 2, chunks);
        std::string part;
        file.read_chunks(dataset, chunk, begin, end, [&](std::span<const std::byte> bytes) {
          CHECK(
              (bytes.size() == chunk || part.size() + begin * chunk + bytes.size() == all.size()));
          part.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        });
        CHECK(part == all.substr(begin * chunk, (end - begin) * chunk));
      }
    }
  }
}

TEST_CASE("a flipped bit of a safetensors file's data is found, and nothing is changed") {
  const test::TempFolder folder;
  const std::string path = folder / "x.safetensors";
  small_model().save_weights(path);
  const std::string bytes = test::read_file(path);
  size_t data = 8;
  for (size_t i = 0; i < 8; ++i) data += size_t{static_cast<uint8_t>(bytes[i])} << 8 * i;
  CHECK(SafetensorsFile(path).metadata().at("xxh128") ==
        xxh128(std::as_bytes(std::span(bytes).subspan(data))));
  const ModelHandle other = small_model(7), untouched = small_model(7);
  for (size_t at = data; at < bytes.size(); ++at) {
    test::write_file(path, flipped(bytes, at));
    CHECK_THAT(test::error_line([&] { other.load_weights(path); }),
               StartsWith("[" + path + "]") && Contains("the tensors have the checksum"));
  }
  CHECK(same_weights(other, untouched));
  test::write_file(path, bytes);
  other.load_weights(path);
  CHECK(same_weights(other, small_model()));
}

TEST_CASE("safetensors files without a checksum, or with another writer's metadata, load") {
  const test::TempFolder folder;
  const std::string path = folder / "x.safetensors";
  const std::vector<float> values{1, 2, 3};
  const std::vector<SafeTensor> tensors{{"x", "F32", {3}, std::as_bytes(std::span(values))}};
  using Metadata = std::map<std::string, std::string>;
  for (const Metadata& metadata :
       {Metadata{}, Metadata{{"format", "pt"}}, Metadata{{"format", "tessera"}}}) {
    write_safetensors(path, tensors, metadata);
    CHECK(SafetensorsFile(path).metadata() == metadata);
  }
  // The writer replaces a checksum of other tensors that was copied with the metadata.
  write_safetensors(path, tensors, {{"format", "tessera"}, {"xxh128", "of other tensors"}});
  CHECK(SafetensorsFile(path).metadata().at("xxh128") == xxh128(std::as_bytes(std::span(values))));
  std::string bytes = test::read_file(path);
  bytes.replace(bytes.find("tessera"), 7, "another");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  test::write_file(path, bytes);
  CHECK_NOTHROW(SafetensorsFile(path));
}

}  // namespace checksum_test
