#pragma once

#include <cstdint>

#include <tessera/datasets/files/imdb_files.hpp>
#include <tessera/framework/base/random.hpp>

namespace tessera::detail {

/// Generates film reviews of random words: lengths, word frequencies, punctuation, line breaks
/// (`<br /><br />`) and UTF-8 letters are like IMDB's; label 1 has more positive than negative
/// words, 0 the reverse. Returns reviews [first, first + n) of an endless sequence; each depends
/// only on `seed` and its own number. Replaces IMDB if its files are missing: a linear bag-of-words
/// model reaches more than 0.8 test accuracy.
LabelledTexts synthetic_reviews(int64_t n, Seed seed, int64_t first = 0);

}  // namespace tessera::detail
