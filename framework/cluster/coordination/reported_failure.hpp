#pragma once

#include <functional>
#include <string>

namespace tessera {

/// Keeps why this process is about to end, for the others of its run to read; nothing if it is
/// alone.
void note_failure(const std::string& what);

/// Who tells the others: called by note_failure() from now on. Null: nobody.
void set_failure_note(std::function<void(const std::string& what)> tell);

}  // namespace tessera
