// The tests of products once more in a program whose Eigen calls a BLAS.
#define EIGEN_USE_BLAS
#include "runtime/algorithm/multiply_test.cpp"
