#include <tessera/framework/serving/internal/version_loader.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/versioned_directory.hpp>
#include <tessera/framework/serving/internal/version_trial.hpp>

namespace tessera::detail {
namespace {

/// Returns names, sizes and modification times of a folder's files, as a text that differs once one
/// of them changes.
std::string files_signature(const std::string& folder) {
  std::vector<std::string> lines;
  std::error_code error;
  for (const std::string& name : names_in(folder, error)) {
    struct stat info {};
    ::stat(path_in(folder, name).c_str(), &info);
    lines.push_back(
        str(name, ' ', info.st_size, ' ', info.st_mtim.tv_sec, '.', info.st_mtim.tv_nsec));
  }
  std::sort(lines.begin(), lines.end());
  return join(lines, "\n");
}

}  // namespace

VersionLoader::VersionLoader(std::string folder, VersionLoaderOptions options)
    : folder_(std::move(folder)), options_(std::move(options)) {}

ExportedModel VersionLoader::first() {
  if (std::optional<ExportedModel> newest = next()) return std::move(*newest);
  // The folder may be that of a single version; otherwise this throws the reason.
  ExportedModel model = load(std::nullopt);
  loaded_ = model.version;
  return model;
}

std::optional<ExportedModel> VersionLoader::next() {
  std::vector<int64_t> versions;
  try {
    versions = list_versions(folder_);
  } catch (const FileError& error) {
    options_.warn(error.what());
    return std::nullopt;
  }
  std::erase_if(refused_, [&](const auto& entry) {
    return std::find(versions.begin(), versions.end(), entry.first) == versions.end();
  });
  for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
    if (*version == loaded_) return std::nullopt;
    if (std::optional<ExportedModel> model = try_version(*version)) return model;
  }
  return std::nullopt;
}

/// Returns the loaded version, or nothing if it cannot be loaded.
std::optional<ExportedModel> VersionLoader::try_version(int64_t version) {
  const std::string signature = files_signature(version_path(folder_, version));
  const auto known = refused_.find(version);
  if (known != refused_.end() && known->second == signature) return std::nullopt;
  try {
    // The first version needs no trial: nothing is in service yet.
    if (options_.isolate_trials && loaded_ >= 0) isolate_trials(version);
    if (options_.stopped()) return std::nullopt;
    ExportedModel model = load(version);
    refused_.erase(version);
    loaded_ = version;
    return model;
  } catch (const std::exception& error) {
    if (known == refused_.end()) {
      options_.warn(str("version ", version, " is refused: ", error.what()));
    }
    refused_[version] = signature;
    return std::nullopt;
  }
}

/// Throws FileError if another process could not load the version.
void VersionLoader::isolate_trials(int64_t version) {
  if (!trial_program_) {
    trial_program_ = find_trial_program();
    if (trial_program_->empty()) {
      options_.warn(
          "tessera-check-export was not found beside this program: newer versions are loaded "
          "without a trial");
    }
  }
  if (trial_program_->empty()) return;
  const bool limited = std::isfinite(options_.max_bytes);
  try_version_in_process(
      {.program = *trial_program_,
       .folder = folder_,
       .version = version,
       .max_activation_bytes = limited ? static_cast<int64_t>(options_.max_bytes) : 0,
       .timeout = options_.trial_timeout},
      options_.stopped);
}

ExportedModel VersionLoader::load(std::optional<int64_t> version) const {
  LoadExportOptions options{.layouts = options_.layouts, .version = version};
  if (std::isfinite(options_.max_bytes)) {
    options.max_activation_bytes = static_cast<int64_t>(options_.max_bytes);
  }
  return load_export(folder_, options);
}

}  // namespace tessera::detail
