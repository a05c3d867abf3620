#include <tessera/framework/io/format/checkpoint_writer.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/checksum.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/internal/rank_text.hpp>
#include <tessera/framework/io/format/checkpoint_index.hpp>
#include <tessera/framework/io/format/checkpoint_path.hpp>
#include <tessera/framework/io/format/checkpoint_plan.hpp>

namespace tessera::detail {
namespace {

using Bytes = std::span<const std::byte>;

/// The shards of one writer and their checksums, sent to the other writers.
struct WriterInfo {
  std::string plan;    ///< CheckpointPlan::checksum()
  std::string number;  ///< StagingDirectory::number() on rank 0; empty on others
  /// The writer's shards in order, and the checksums of each shard's chunks.
  std::vector<CheckpointShard> shards = {};
  std::vector<std::vector<std::string>> checksums = {};
};

Json to_json(const WriterInfo& info) {
  Json shards = Json::array();
  for (size_t i = 0; i < info.shards.size(); ++i) {
    shards.push_back({{"bytes", info.shards[i].bytes},
                      {"header_checksum", info.shards[i].header_checksum},
                      {"checksums", info.checksums[i]}});
  }
  return {{"plan", info.plan}, {"number", info.number}, {"shards", std::move(shards)}};
}

WriterInfo writer_info_from_json(const Json& json, const JsonPath& path) {
  JsonObject object(json, path);
  WriterInfo info{object.take<std::string>("plan"), object.take<std::string>("number")};
  const auto shards = object.take<std::vector<Json>>("shards");
  object.finish();
  for (size_t i = 0; i < shards.size(); ++i) {
    JsonObject shard(shards[i], path.key("shards").index(i));
    info.shards.push_back(
        {shard.take<uint64_t>("bytes"), shard.take<std::string>("header_checksum")});
    info.checksums.push_back(shard.take<std::vector<std::string>>("checksums"));
    shard.finish();
  }
  return info;
}

/// The save of one checkpoint.
class Save {
 public:
  Save(const std::string& folder, const CheckpointWriterOptions& options)
      : folder_(folder), options_(options) {}

  void run(const std::vector<CheckpointTensor>& tensors, const std::vector<CheckpointPiece>& pieces,
           const Json& state) {
    const std::vector<std::string> texts =
        each([&] { return to_json_text(prepare(tensors, pieces, state), -1); });
    const std::vector<WriterInfo> writers = read(texts);
    std::string index;
    each([&] {
      if (is_first()) index = complete_index(writers);
      write_shards(checkpoint_.temporary(writers[0].number));
      return "";
    });
    each([&] {
      if (is_first()) commit(index);
      return "";
    });
  }

 private:
  bool is_first() const { return options_.rank == 0; }

  std::vector<std::string> each(const std::function<std::string()>& work) const {
    return collectively(options_.gather, folder_, "every process writes its part of the checkpoint",
                        work);
  }

  Json prepare(const std::vector<CheckpointTensor>& tensors,
               const std::vector<CheckpointPiece>& pieces, const Json& state) {
    checkpoint_ = split_checkpoint_path(folder_);
    plan_ = plan_checkpoint(checkpoint_.path(), tensors, pieces, options_);
    WriterInfo info{.plan = plan_.checksum(), .number = ""};
    describe_shards(info);
    if (is_first()) {
      // Rejects what could not be read back, such as too deep nesting.
      parse_json(to_json_text(Json{{"state", state}}, -1), checkpoint_.path() + ", state");
      plan_.index.state = state;
      check_only_checkpoint(checkpoint_.path());
      info.number = temporary_.emplace(checkpoint_).number();
    }
    return to_json(info);
  }

  void describe_shards(WriterInfo& info) {
    std::vector<std::vector<std::string>> checksums(plan_.shards.size());
    std::vector<size_t> next(plan_.shards.size());
    for (const StoredTensor& stored : plan_.index.tensors) {
      for (const StoredPiece& piece : stored.pieces) {
        const PlannedShard& shard = plan_.shards[piece.shard];
        const Bytes data = shard.contents[next[piece.shard]++].data;
        for (uint64_t at = 0; at < data.size(); at += checkpoint_chunk_bytes) {
          checksums[piece.shard].push_back(
              xxh128(data.subspan(at, std::min(checkpoint_chunk_bytes, data.size() - at))));
        }
      }
    }
    for (size_t i = 0; i < plan_.shards.size(); ++i) {
      PlannedShard& shard = plan_.shards[i];
      headers_.emplace_back();
      if (shard.writer != options_.rank) continue;
      headers_[i] = begin_safetensors(shard.contents, checkpoint_metadata(join(checksums[i], "")),
                                      checkpoint_.path());
      uint64_t bytes = headers_[i].size();
      for (const SafeTensor& tensor : shard.contents) bytes += tensor.data.size();
      info.shards.push_back({bytes, xxh128(std::as_bytes(std::span(headers_[i])))});
      info.checksums.push_back(std::move(checksums[i]));
    }
  }

  /// Parses the information of all writers. Throws ConfigError on all if their plans differ.
  std::vector<WriterInfo> read(const std::vector<std::string>& texts) const {
    std::vector<WriterInfo> writers;
    std::vector<int> others;
    for (size_t rank = 0; rank < texts.size(); ++rank) {
      const std::string where = str(folder_, ", rank ", rank);
      writers.push_back(writer_info_from_json(parse_json(texts[rank], where), JsonPath(where)));
      if (writers[rank].plan != writers[0].plan) others.push_back(static_cast<int>(rank));
    }
    if (others.empty()) return writers;
    throw ConfigError(checkpoint_.path(), "all processes save the same tensors in the same shards",
                      "they differ from rank 0's on " + rank_names(others),
                      "use the same model, layouts and mesh on all processes");
  }

  /// Adds the writers' shards and checksums to the index. Returns its text.
  std::string complete_index(const std::vector<WriterInfo>& writers) {
    CheckpointIndex& index = plan_.index;
    std::vector<size_t> next_shard(writers.size());
    std::vector<const std::vector<std::string>*> checksums;
    for (const PlannedShard& shard : plan_.shards) {
      const auto writer = static_cast<size_t>(shard.writer);
      const size_t number = next_shard[writer]++;
      index.shards.push_back(writers[writer].shards.at(number));
      checksums.push_back(&writers[writer].checksums.at(number));
    }
    std::vector<size_t> next(plan_.shards.size());
    for (StoredTensor& stored : index.tensors) {
      for (StoredPiece& piece : stored.pieces) {
        const uint64_t chunks = checkpoint_chunks(checkpoint_bytes(stored.tensor, piece.area));
        for (uint64_t i = 0; i < chunks; ++i) {
          piece.checksums.push_back(checksums[piece.shard]->at(next[piece.shard]++));
        }
      }
    }
    std::string text = checkpoint_index_text(index);
    if (text.size() <= max_checkpoint_index) return text;
    throw ConfigError(checkpoint_.path(),
                      str("an index of at most ", max_checkpoint_index, " bytes"), str(text.size()),
                      "reduce the state or the number of tensors");
  }

  void write_shards(const std::string& folder) const {
    if (!is_first() && !exists(folder)) {
      throw FileError(folder, "every process sees the folder that rank 0 made",
                      str("rank ", options_.rank, " does not see it"),
                      "pass a folder on a file system that all processes share");
    }
    for (size_t i = 0; i < plan_.shards.size(); ++i) {
      if (plan_.shards[i].writer != options_.rank) continue;
      std::vector<Bytes> parts{std::as_bytes(std::span(headers_[i]))};
      for (const SafeTensor& tensor : plan_.shards[i].contents) parts.push_back(tensor.data);
      write_new_file(folder + "/" + checkpoint_shard_file(i), parts);
    }
  }

  /// Verifies the sizes of all shards: a shared file system may not show what another process
  /// wrote, even after that process said so.
  void check_shards() const {
    for (size_t i = 0; i < plan_.index.shards.size(); ++i) {
      const std::string path = path_in(temporary_->path(), checkpoint_shard_file(i));
      const uint64_t bytes = plan_.index.shards[i].bytes;
      struct stat info {};
      const bool there = ::lstat(path.c_str(), &info) == 0;
      if (there && S_ISREG(info.st_mode) && std::cmp_equal(info.st_size, bytes)) continue;
      throw FileError(path,
                      str("the file that rank ", plan_.shards[i].writer, " wrote must have ", bytes,
                          " bytes before the checkpoint is committed"),
                      there ? str(info.st_size, " bytes") : "no such file",
                      "make sure that no other program changes the folder, and save again");
    }
  }

  void commit(const std::string& index) {
    check_shards();
    const auto write_text = [&](const char* name, const std::string& text) {
      const Bytes part = std::as_bytes(std::span(text));
      write_new_file(path_in(temporary_->path(), name), std::span(&part, 1));
    };
    write_text(checkpoint_index_file, index);
    write_text(checkpoint_checksum_file, checkpoint_checksum_text(index));
    temporary_->commit();
  }

  const std::string& folder_;
  const CheckpointWriterOptions& options_;
  CheckpointPath checkpoint_;
  CheckpointPlan plan_;
  std::vector<std::string> headers_;           ///< by shard; empty for those of other writers
  std::optional<StagingDirectory> temporary_;  ///< on rank 0 only
};

}  // namespace

void write_checkpoint(const std::string& folder, const std::vector<CheckpointTensor>& tensors,
                      const std::vector<CheckpointPiece>& pieces, const Json& state,
                      const CheckpointWriterOptions& options) {
  Save(folder, options).run(tensors, pieces, state);
}

}  // namespace tessera::detail
