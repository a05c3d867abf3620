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

/// A vocabulary as files by name: "vocabulary.txt" as Keras writes it, one token a line and no line
/// end after the last; "idf_weights.txt", one decimal a line, if there are weights; and where a
/// token has a line end in it "vocabulary_lengths.txt", the bytes of each token.
std::map<std::string, std::string> vocabulary_files(const VocabularyFiles& vocabulary);

/// What vocabulary_files wrote, exactly. Throws ConfigError naming the file for another file, a
/// missing one, a number that is none, or numbers of lines that differ.
VocabularyFiles read_vocabulary_files(const std::map<std::string, std::string>& files);

}  // namespace tessera::detail
