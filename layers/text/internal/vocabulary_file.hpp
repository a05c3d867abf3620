#pragma once

#include <map>
#include <string>
#include <vector>

namespace tessera::detail {

/// Tokens by index and, for tf-idf, their weights.
struct VocabularyFiles {
  std::vector<std::string> tokens = {};
  std::vector<float> idf_weights = {};
};

/// Writes a vocabulary as files, by name: "vocabulary.txt" as Keras writes it, one token a line
/// without a line end after the last; "idf_weights.txt", one decimal a line, if there are weights;
/// and, if a token contains a line end, "vocabulary_lengths.txt", the bytes of each token.
std::map<std::string, std::string> vocabulary_files(const VocabularyFiles& vocabulary);

/// Reads exactly what vocabulary_files() wrote. Throws ConfigError naming the file for an unknown
/// or missing file, an invalid number, or different numbers of lines.
VocabularyFiles read_vocabulary_files(const std::map<std::string, std::string>& files);

}  // namespace tessera::detail
