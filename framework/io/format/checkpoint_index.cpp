#include <tessera/framework/io/format/checkpoint_index.hpp>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/byte_reader.hpp>
#include <tessera/framework/base/internal/checksum.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/safetensors_header.hpp>

namespace tessera::detail {
namespace {

constexpr const char* format_name = "tessera checkpoint";
constexpr size_t checksum_digits = 32;

Json to_json(const StoredPiece& piece) {
  return {{"shard", piece.shard},
          {"begin", piece.area.begin},
          {"end", piece.area.end},
          {"checksums", piece.checksums}};
}

Json to_json(const StoredTensor& stored) {
  Json pieces = Json::array();
  for (const StoredPiece& piece : stored.pieces) pieces.push_back(to_json(piece));
  return {{"name", stored.tensor.name},
          {"dtype", stored.tensor.dtype},
          {"shape", stored.tensor.shape},
          {"pieces", std::move(pieces)}};
}

/// Converts the JSON of index.json to a CheckpointIndex.
class IndexReader {
 public:
  explicit IndexReader(const std::string& path) : path_(path) {}

  CheckpointIndex read(const Json& json) {
    JsonObject object(json, JsonPath(path_));
    check_version(object);
    CheckpointIndex index;
    const auto shards = object.take<std::vector<Json>>("shards");
    for (size_t i = 0; i < shards.size(); ++i) {
      index.shards.push_back(shard(shards[i], object.path().key("shards").index(i)));
    }
    const auto tensors = object.take<std::vector<Json>>("tensors");
    for (size_t i = 0; i < tensors.size(); ++i) {
      index.tensors.push_back(tensor(tensors[i], object.path().key("tensors").index(i)));
      check(index.tensors.back(), index.shards.size());
    }
    index.state = object.take<Json>("state");
    object.finish();
    check_names(index);
    return index;
  }

 private:
  [[noreturn]] void fail(const std::string& expected, const std::string& received) const {
    const std::string where = tensor_ ? path_ + ", tensor " + in_quotes(*tensor_) : path_;
    throw FileError(where, expected, received, "restore the file, or use another checkpoint");
  }

  void check_version(JsonObject& object) const {
    const auto format = object.take<std::string>("format");
    if (format != format_name) {
      fail(str("the format is ", in_quotes(format_name)), in_quotes(format));
    }
    const auto version = object.take<int64_t>("version");
    if (version < 1) fail("a version of at least 1", str(version));
    if (version <= checkpoint_version) return;
    throw FileError(path_, str("a checkpoint of version ", checkpoint_version, " or older"),
                    str("version ", version, ", which needs a Tessera that reads >= ", version),
                    "use a newer Tessera");
  }

  CheckpointShard shard(const Json& json, const JsonPath& path) const {
    JsonObject object(json, path);
    CheckpointShard shard{object.take<uint64_t>("bytes"),
                          object.take<std::string>("header_checksum")};
    object.finish();
    check_checksum(shard.header_checksum);
    return shard;
  }

  StoredTensor tensor(const Json& json, const JsonPath& path) {
    JsonObject object(json, path);
    StoredTensor stored;
    stored.tensor = {object.take<std::string>("name"), object.take<std::string>("dtype"),
                     object.take<Shape>("shape")};
    const auto pieces = object.take<std::vector<Json>>("pieces");
    for (size_t i = 0; i < pieces.size(); ++i) {
      JsonObject piece(pieces[i], object.path().key("pieces").index(i));
      stored.pieces.push_back({piece.take<uint64_t>("shard"),
                               {piece.take<Shape>("begin"), piece.take<Shape>("end")},
                               piece.take<std::vector<std::string>>("checksums")});
      piece.finish();
    }
    object.finish();
    return stored;
  }

  void check(const StoredTensor& stored, size_t shards) {
    const CheckpointTensor& tensor = stored.tensor;
    tensor_ = &tensor.name;
    if (!is_checkpoint_dtype(tensor.dtype)) {
      fail("a safetensors dtype of whole bytes", in_quotes(tensor.dtype));
    }
    const bool negative = std::any_of(tensor.shape.begin(), tensor.shape.end(),
                                      [](int64_t extent) { return extent < 0; });
    const auto bytes = negative ? std::nullopt : safetensors_bytes(tensor.shape, tensor.dtype);
    if (!bytes) fail("a shape of fewer than 2^61 bytes", to_string(tensor.shape));
    std::vector<Rectangle> areas;
    for (const StoredPiece& piece : stored.pieces) {
      check(piece, tensor, shards);
      areas.push_back(piece.area);
    }
    Grid grid;
    const std::string problem = find_grid(tensor.shape, std::move(areas), grid);
    if (!problem.empty()) {
      fail(str("the pieces cover its shape ", to_string(tensor.shape), " once, as a grid"),
           problem);
    }
    tensor_ = nullptr;
  }

  void check(const StoredPiece& piece, const CheckpointTensor& tensor, size_t shards) const {
    const std::string received = to_string(piece.area.begin) + " to " + to_string(piece.area.end);
    const bool inside = is_inside(piece.area, tensor.shape);
    if (!inside || checkpoint_bytes(tensor, piece.area) == 0) {
      fail("pieces lie inside its shape " + to_string(tensor.shape), received);
    }
    if (piece.shard >= shards) {
      fail(str("one of ", shards, " shards"), str("shard ", piece.shard));
    }
    const uint64_t chunks = checkpoint_chunks(checkpoint_bytes(tensor, piece.area));
    if (piece.checksums.size() != chunks) {
      fail(str(chunks, " checksums for the piece ", received), str(piece.checksums.size()));
    }
    for (const std::string& checksum : piece.checksums) check_checksum(checksum);
  }

  void check_checksum(const std::string& checksum) const {
    const bool good = checksum.size() == checksum_digits &&
                      checksum.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!good) fail("a checksum has 32 hexadecimal digits", in_quotes(checksum));
  }

  void check_names(const CheckpointIndex& index) const {
    std::unordered_set<std::string_view> names;
    for (const StoredTensor& stored : index.tensors) {
      if (names.insert(stored.tensor.name).second) continue;
      fail("every tensor has a unique name", in_quotes(stored.tensor.name) + " twice");
    }
  }

  const std::string& path_;
  const std::string* tensor_ = nullptr;
};

}  // namespace

std::string checkpoint_shard_file(uint64_t shard) {
  const std::string digits = std::to_string(shard);
  const std::string zeros(digits.size() < 5 ? 5 - digits.size() : 0, '0');
  return "shard-" + zeros + digits + ".safetensors";
}

std::string checkpoint_piece_name(const CheckpointTensor& tensor, const Rectangle& area) {
  if (area == Rectangle{Shape(tensor.shape.size(), 0), tensor.shape}) return tensor.name;
  std::string ranges;
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    ranges += str(axis == 0 ? "" : ", ", area.begin[axis], ":", area.end[axis]);
  }
  return tensor.name + "[" + ranges + "]";
}

uint64_t checkpoint_bytes(const CheckpointTensor& tensor, const Rectangle& area) {
  return safetensors_bytes(area.shape(), tensor.dtype).value();
}

uint64_t checkpoint_chunks(uint64_t bytes) {
  return bytes / checkpoint_chunk_bytes + (bytes % checkpoint_chunk_bytes != 0);
}

std::map<std::string, std::string> checkpoint_metadata(const std::string& checksums) {
  return {{"content", xxh128(std::as_bytes(std::span(checksums)))}, {"format", "tessera"}};
}

bool is_checkpoint_dtype(std::string_view dtype) {
  const auto bits = safetensors_bits(dtype);
  return bits && *bits % 8 == 0;
}

std::string checkpoint_index_text(const CheckpointIndex& index) {
  Json shards = Json::array();
  for (const CheckpointShard& shard : index.shards) {
    shards.push_back({{"bytes", shard.bytes}, {"header_checksum", shard.header_checksum}});
  }
  Json tensors = Json::array();
  for (const StoredTensor& stored : index.tensors) tensors.push_back(to_json(stored));
  const Json json{{"format", format_name},
                  {"version", checkpoint_version},
                  {"shards", std::move(shards)},
                  {"tensors", std::move(tensors)},
                  {"state", index.state}};
  return to_json_text(json, -1) + "\n";
}

std::string checkpoint_checksum_text(std::string_view index_text) {
  return str(xxh128(std::as_bytes(std::span(index_text))), "  ", checkpoint_index_file, "\n");
}

CheckpointIndex parse_checkpoint_index(std::string_view text, const std::string& path) {
  try {
    return IndexReader(path).read(parse_json(text, path));
  } catch (const ConfigError& error) {
    throw FileError(error.what());
  }
}

}  // namespace tessera::detail
