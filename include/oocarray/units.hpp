// Byte sizes as they are written in a program: `512_MiB`.
#pragma once

#include <cstdint>

namespace ooc {
inline namespace literals {

constexpr std::uint64_t operator""_KiB(unsigned long long n) { return std::uint64_t{n} << 10; }
constexpr std::uint64_t operator""_MiB(unsigned long long n) { return std::uint64_t{n} << 20; }
constexpr std::uint64_t operator""_GiB(unsigned long long n) { return std::uint64_t{n} << 30; }
constexpr std::uint64_t operator""_TiB(unsigned long long n) { return std::uint64_t{n} << 40; }

}  // namespace literals
}  // namespace ooc
