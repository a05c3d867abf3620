#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/framework/model/model.hpp>
#include <tessera/framework/text/tokenizer.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::app {

/// Adds --dtype with all dtype policies, for programs that leave out the common one.
void add_dtype_option(AppOptions& options);

/// Reads the tokenizer of a folder or file, without its truncation and padding. Collective. Throws
/// as load_tokenizer().
Tokenizer pretrained_tokenizer(const Mesh& mesh, const std::string& path);

/// Returns the number of rows of the weight with this path; nothing if the model has none.
std::optional<int64_t> rows_of_weight(const ModelHandle& model, const std::string& path);

/// Throws ConfigError if a model of load_pretrained() lacks an embedding of one of the tokenizer's
/// token ids.
void check_vocabulary(const ModelHandle& model, const Tokenizer& tokenizer,
                      const std::string& path);

}  // namespace tessera::app
