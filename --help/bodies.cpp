#include <tessera/tessera.hpp>
using namespace tessera;
