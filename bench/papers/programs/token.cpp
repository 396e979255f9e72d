#include "token.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace papers {
namespace {

std::byte content(std::uint64_t way, std::size_t i) { return static_cast<std::byte>(way * 31 + i + (i >> 8)); }

}  // namespace

token::token(std::size_t bytes) : memory_(bytes) {
  if (bytes == 0) throw std::runtime_error("a token has at least 1 byte");
}

void token::make(std::uint64_t way, bool last) {
  memory_[0] = std::byte{last};
  for (std::size_t i = 1; i < memory_.size(); ++i) memory_[i] = content(way, i);
}

bool token::check(std::uint64_t way) const {
  if (memory_[0] > std::byte{1}) throw std::runtime_error("wrong data at byte 0 of a token");
  for (std::size_t i = 1; i < memory_.size(); ++i)
    if (memory_[i] != content(way, i))
      throw std::runtime_error("wrong data at byte " + std::to_string(i) + " of a token");
  return memory_[0] == std::byte{1};
}

meter::meter(double started, double begin, double seconds, std::size_t slots)
    : begin_(begin), length_(seconds), before_(started), ways_(slots) {
  if (slots == 0 || !(seconds > 0)) throw std::runtime_error("a meter needs slots and seconds");
  if (started > begin) throw std::runtime_error("the order came after the time to begin");
}

void meter::tick(double now) {
  for (std::size_t s = 0; s < ways_.size() && now > before_; ++s) {
    const double first = begin_ + length_ * static_cast<double>(s);
    const double common = std::min(now, first + length_) - std::max(before_, first);
    if (common > 0) ways_[s] += common / (now - before_);
  }
  before_ = now;
}

std::vector<double> meter::rates() const {
  if (!over(before_)) throw std::runtime_error("the last way ended before the last slot");
  std::vector<double> rates;
  for (const double w : ways_) rates.push_back(w / length_);
  return rates;
}

}  // namespace papers
