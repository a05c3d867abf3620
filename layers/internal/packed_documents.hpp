#pragma once

#include <string>

#include <tessera/framework/tensor/dtensor.hpp>

/// Rows that hold several documents, as integers (batch, T): steps of a row with the same id are
/// one document.
namespace tessera::detail {

/// Throws ShapeError unless `documents` are integers (batch, T) of these extents.
void check_documents(const std::string& where, const DTensor& documents, int64_t batch,
                     int64_t steps);
/// Returns whether two steps of a row are of one document, bool (batch, T, T).
DTensor document_mask(const DTensor& documents);
/// Returns each step's position in its document from 0 on, integers (batch, T).
DTensor document_positions(const DTensor& documents);

}  // namespace tessera::detail
