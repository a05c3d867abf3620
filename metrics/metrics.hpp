#pragma once

#include <tessera/metrics/accuracy.hpp>
#include <tessera/metrics/binary_accuracy.hpp>
#include <tessera/metrics/categorical_accuracy.hpp>
#include <tessera/metrics/mean.hpp>
#include <tessera/metrics/sparse_categorical_accuracy.hpp>
