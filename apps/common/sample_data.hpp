#pragma once

#include <string>

namespace tessera::app {

// Small synthetic datasets for programs that were given no data. Each function writes into an empty
// folder and returns the path to read.

/// Writes 303 patients in the columns of heart.csv, a table of Keras' guides.
std::string sample_patients(const std::string& folder);

/// Writes 6,000 observations of seven quantities, one every ten minutes, in the format of the Jena
/// weather dataset.
std::string sample_weather(const std::string& folder);

/// Writes sixty short reviews of each class into the folders "neg" and "pos".
std::string sample_reviews(const std::string& folder);

/// Writes 200 pictures each of horizontal and vertical stripes into the folders "across" and
/// "upright".
std::string sample_stripes(const std::string& folder);

}  // namespace tessera::app
