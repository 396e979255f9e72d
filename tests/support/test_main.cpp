#include "support/catch_runner.hpp"

int main(int argc, char** argv) { return ooc::testing::run_cases(argc, argv); }
