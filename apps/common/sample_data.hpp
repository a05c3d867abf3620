#pragma once

#include <string>

namespace tessera::app {

/// Small data that follow from a formula, for programs that were given none. Each writes into an
/// empty folder and gives the path to read.

/// 303 patients in the columns of heart.csv, a table of Keras' guides.
std::string sample_patients(const std::string& folder);

/// 6,000 observations of seven quantities, every ten minutes, as the weather station of Jena has
/// them.
std::string sample_weather(const std::string& folder);

/// Sixty short reviews of each class in the folders "neg" and "pos".
std::string sample_reviews(const std::string& folder);

/// Two hundred pictures of each class in the folders "across" and "upright", with such stripes.
std::string sample_stripes(const std::string& folder);

}  // namespace tessera::app
