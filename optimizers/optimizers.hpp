#pragma once

#include <tessera/optimizers/adam.hpp>
#include <tessera/optimizers/adamw.hpp>
#include <tessera/optimizers/sgd.hpp>
