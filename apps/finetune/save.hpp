#pragma once

#include <string>

#include <tessera/tessera.hpp>

namespace tessera::finetune {

/// Copies the files of the tokenizer and of generation from one folder of Hugging Face's programs
/// to another: those that are there. Throws FileError.
void copy_text_files(const std::string& from, const std::string& to);

/// Writes a whole model, which load_pretrained() reads. Collective. Throws as save_pretrained().
void save_whole_model(const ModelHandle& model, const std::string& base, const std::string& folder);

}  // namespace tessera::finetune
