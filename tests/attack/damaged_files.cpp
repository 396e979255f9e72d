// Files of a store are flipped, cut, zeroed, swapped or replaced by older copies: a read gives what
// was written last, or an error.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>

#include "attack/elements.hpp"
#include "attack/round.hpp"

namespace ooc::attack {

namespace {

namespace fs = std::filesystem;
using element = std::uint64_t;
constexpr std::size_t elements = 8192;

struct known_array {
  std::string path;
  std::vector<element> values;
};

std::string url_of(const fs::path& base) {
  return "local:" + (base / "node0").string() + "," + (base / "node1").string();
}

store_options small() {
  store_options o;
  o.workers = 1;
  o.staging = 64_KiB;
  o.create = false;
  return o;
}

/// Writes some elements of all arrays, each generation anew, and makes them durable.
void write_generation(round& r, const fs::path& base, std::vector<known_array>& arrays, std::uint64_t generation) {
  store_options so = small();
  so.create = true;
  const store s = store::open(url_of(base), so);
  runtime rt{{.memory = 1_MiB}};
  for (known_array& k : arrays) {
    std::optional<ooc_array<element, 1>> a;
    if (generation == 0)
      a.emplace(rt, s, k.path, create, std::array<std::size_t, 1>{elements},
                array_options<element>{.block = 16_KiB, .stripes = {.sf = 16_KiB}, .fill = element{5}});
    else
      a.emplace(rt, s, k.path, open);
    for (std::uint64_t n = r.between(1, 4); n > 0; --n) {
      const box<1> b = draw_box<1>(r.dice(), {elements});
      for (std::size_t i = b.lower[0]; i < b.upper[0]; ++i)
        (*a)[i] = k.values[i] = (generation + 1) << 40 | r.between(0, 3) << 32 | i;
    }
    a->writeback(durable);
    r.counts().acknowledged_bytes += elements * sizeof(element);
  }
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& e : fs::recursive_directory_iterator(folder))
    if (e.is_regular_file() && e.file_size() > 0 && e.path().extension() != ".lock")
      found.push_back(fs::relative(e.path(), folder));
  std::sort(found.begin(), found.end());
  return found;
}

/// Overwrites bytes in place.
void overwrite(const fs::path& file, std::uint64_t at, const std::string& bytes) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at)) < 0)
    throw std::system_error(errno, std::generic_category(), file.string());
  ::close(fd);
}
std::string part_of(const fs::path& file, std::uint64_t at, std::uint64_t bytes) {
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(at));
  std::string text(bytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(bytes));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

/// Damages one file of `base`; `older` is a copy of the whole from before the last generations.
std::string damage(round& r, const fs::path& base, const fs::path& older) {
  const std::vector<fs::path> all = files_below(base);
  const fs::path name = all[r.between(0, all.size() - 1)], file = base / name;
  const std::uint64_t size = fs::file_size(file);
  const std::uint64_t at = r.between(0, size - 1);
  switch (r.between(0, 6)) {
    case 0: {
      std::string byte = part_of(file, at, 1);
      byte[0] = static_cast<char>(byte[0] ^ (1 << r.between(0, 7)));
      overwrite(file, at, byte);
      return "one bit of " + name.string() + " at byte " + std::to_string(at);
    }
    case 1: fs::resize_file(file, at); return name.string() + " cut to " + std::to_string(at) + " bytes";
    case 2: {
      const std::uint64_t begin = at / 4096 * 4096;
      overwrite(file, begin, std::string(std::min<std::uint64_t>(4096 * r.between(1, 4), size - begin), '\0'));
      return name.string() + " zeroed from byte " + std::to_string(begin);
    }
    case 3: {  // two pages of one file
      const std::uint64_t a = at / 4096 * 4096, b = r.between(0, size - 1) / 4096 * 4096;
      const std::string first = part_of(file, a, 4096), second = part_of(file, b, 4096);
      overwrite(file, a, second);
      overwrite(file, b, first);
      return "pages " + std::to_string(a / 4096) + " and " + std::to_string(b / 4096) + " of " + name.string() +
             " swapped";
    }
    case 4: {  // two files of a kind, with what belongs to them where there are three
      std::vector<fs::path> alike;
      for (const fs::path& f : all)
        if (f != name && f.extension() == name.extension()) alike.push_back(f);
      if (alike.empty() || name.extension() == ".db") return "nothing";
      const fs::path other = alike[r.between(0, alike.size() - 1)];
      const bool family = r.one_in(2);
      for (const char* end : {".data", ".sum"}) {
        if (!family && name.extension() != end) continue;
        fs::path a = file, b = base / other, t = base / "swap";
        a.replace_extension(end);
        b.replace_extension(end);
        if (!fs::exists(a) || !fs::exists(b)) continue;
        fs::rename(a, t);
        fs::rename(b, a);
        fs::rename(t, b);
      }
      return name.string() + " and " + other.string() + " swapped" + (family ? ", .data and .sum" : "");
    }
    case 5:
    default: {  // an older copy
      if (!fs::exists(older / name)) return "nothing";
      const bool family = r.one_in(2) && (name.extension() == ".data" || name.extension() == ".sum");
      std::error_code ignored;
      if (family) {
        for (const char* end : {".data", ".sum"})
          fs::copy_file((older / name).replace_extension(end), fs::path(file).replace_extension(end),
                        fs::copy_options::overwrite_existing);
      } else {
        if (name.extension() == ".db") {
          fs::remove(file.string() + "-wal", ignored);
          fs::remove(file.string() + "-shm", ignored);
        }
        fs::copy_file(older / name, file, fs::copy_options::overwrite_existing);
      }
      return "an older copy of " + name.string() + (family ? ", .data and .sum" : "");
    }
  }
}

/// Reads everything in pieces; wrong values are a finding, errors are counted.
int read_back(round& r, const fs::path& base, const std::vector<known_array>& arrays, const std::string& what) {
  try {
    const store s = store::open(url_of(base), small());
    runtime rt{{.memory = 1_MiB}};
    for (const known_array& k : arrays) {
      try {
        const ooc_array<element, 1> a{rt, s, k.path, open_read_only};
        if (a.size() != elements) throw finding(verdict::wrong, what + ": another size");
        std::vector<element> got(512);
        for (std::size_t i = 0; i < elements; i += got.size()) {
          try {
            a.read_all({{i}, {i + got.size()}}, got);
          } catch (const error& e) {
            ++r.counts().refused;
            continue;
          }
          ++r.counts().operations;
          for (std::size_t n = 0; n < got.size(); ++n)
            if (got[n] != k.values[i + n])
              throw finding(verdict::wrong, what + ": element " + std::to_string(i + n) + " of " + k.path +
                                                " reads as good " + hex(got[n]) + ", written was " +
                                                hex(k.values[i + n]));
        }
      } catch (const error& e) {
        std::cout << what << ": " << e.what() << std::endl;
        ++r.counts().refused;
      }
    }
  } catch (const error& e) {
    std::cout << what << ": " << e.what() << std::endl;
    ++r.counts().refused;
  }
  return 0;
}

}  // namespace

void damaged_files(round& r) {
  const fs::path good = r.folder() / "good", older = r.folder() / "older", bad = r.folder() / "bad";
  std::vector<known_array> arrays;
  for (const char* name : {"a", "b"}) arrays.push_back({name, std::vector<element>(elements, 5)});
  const auto copy = [](const fs::path& from, const fs::path& to) {
    fs::remove_all(to);
    fs::copy(from, to, fs::copy_options::recursive);
  };
  // The older copy lies several openings for writing back: one would be what a crash leaves.
  for (std::uint64_t g = 0; g < 4; ++g) {
    if (g == 1) copy(good, older);
    write_generation(r, good, arrays, g);
  }
  const std::uint64_t refused = r.counts().refused;
  for (std::uint64_t n = 0, most = r.between(4, 10); n < most; ++n) {
    copy(good, bad);
    const std::string what = n == 0 ? "nothing" : damage(r, bad, older);
    const pid_t reader = r.in_child([&] { return read_back(r, bad, arrays, what); });
    if (const int s = r.wait_for(reader, std::chrono::seconds(60), what + ": the reader"))
      throw finding(verdict::failed, what + ": the reader ended with status " + std::to_string(s));
    if (n == 0 && r.counts().refused != refused)
      throw finding(verdict::failed, "an undamaged copy of the store is refused");
  }
}

}  // namespace ooc::attack
