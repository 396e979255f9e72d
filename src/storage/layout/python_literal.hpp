// Reads the few of Python's literals that describe arrays of NumPy: strings, whole numbers, True and False, and
// the brackets and commas between them.  Throws malformed_literal, for the caller to say where it stood.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ooc::storage {

struct malformed_literal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Appends the UTF-8 of a code point.
inline void append_utf8(std::string& s, std::uint32_t code) {
  const auto add = [&](std::uint32_t byte) { s += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) return add(0xc0 | code >> 6), add(0x80 | (code & 0x3f));
  if (code < 0x10000) {
    add(0xe0 | code >> 12);
  } else {
    add(0xf0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3f));
  }
  add(0x80 | (code >> 6 & 0x3f));
  add(0x80 | (code & 0x3f));
}

/// As Python's repr(), but for what cannot be printed beyond ASCII.
inline std::string python_string(std::string_view text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string s(1, quote);
  for (const char c : text) {
    constexpr const char* digits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\')
      (s += '\\') += c;
    else if (byte < 0x20 || byte == 0x7f)
      ((s += "\\x") += digits[byte >> 4]) += digits[byte & 15];
    else
      s += c;
  }
  return s + quote;
}

class literal_reader {
 public:
  explicit literal_reader(std::string_view text) : rest_(text) {}

  bool accept(char c) {
    if (!at(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) throw malformed_literal(std::string("it lacks a '") + c + "'");
  }
  bool at(char c) {
    skip_space();
    return !rest_.empty() && rest_[0] == c;
  }
  bool finished() {
    skip_space();
    return rest_.empty();
  }

  std::string string() {
    skip_space();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) throw malformed_literal("it lacks a string");
    const char quote = take();
    std::string s;
    for (;;) {
      if (rest_.empty()) throw malformed_literal("a string in it does not end");
      const char c = take();
      if (c == quote) return s;
      if (c == '\\')
        escape(s);
      else
        s += c;
    }
  }

  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"})
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return word == "True";
      }
    throw malformed_literal("it has something that is neither True nor False");
  }

  std::uint64_t number() {
    skip_space();
    std::uint64_t n = 0;
    const auto r = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
    if (r.ec != std::errc()) throw malformed_literal("its shape holds something that is not a number");
    rest_.remove_prefix(static_cast<std::size_t>(r.ptr - rest_.data()));
    if (!rest_.empty() && rest_[0] == 'L') rest_.remove_prefix(1);  // written by Python 2
    return n;
  }

  /// (3, 4)
  std::vector<std::uint64_t> numbers() {
    std::vector<std::uint64_t> all;
    expect('(');
    while (!accept(')')) {
      all.push_back(number());
      if (!accept(',') && !at(')')) throw malformed_literal("its shape is not a list of numbers");
    }
    return all;
  }

 private:
  char take() {
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }

  void escape(std::string& s) {
    if (rest_.empty()) throw malformed_literal("a string in it does not end");
    const char c = take();
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0) {
      s += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
      return;
    }
    std::uint32_t code = 0;
    const std::size_t there = rest_.size() < digits ? rest_.size() : digits;
    const auto r = std::from_chars(rest_.data(), rest_.data() + there, code, 16);
    if (r.ec != std::errc() || r.ptr != rest_.data() + digits || code > 0x10ffff)
      throw malformed_literal("a string in it has an escape that is none");
    rest_.remove_prefix(digits);
    append_utf8(s, code);
  }

  void skip_space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t')) rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

}  // namespace ooc::storage
