// file_tree: the file system of this machine.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "copying/file_tree.hpp"
#include "formats/plain_file.hpp"
#include "oocarray/error.hpp"

namespace ooc::tool {

namespace {

namespace fs = std::filesystem;
using storage::entry;
using storage::entry_kind;

[[noreturn]] void fail(int error, const std::string& path, const char* doing) {
  throw io_error({error, std::generic_category()}, "'" + path + "' cannot be " + doing);
}

entry_kind kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return entry_kind::folder;
  if (S_ISLNK(mode)) return entry_kind::link;
  if (S_ISFIFO(mode)) return entry_kind::fifo;
  if (S_ISSOCK(mode)) return entry_kind::socket;
  if (S_ISCHR(mode)) return entry_kind::character_device;
  if (S_ISBLK(mode)) return entry_kind::block_device;
  return entry_kind::file;
}

/// `follow`: what a symbolic link leads to.
std::optional<entry> look_at(const std::string& path, bool follow) {
  struct ::stat s {};
  if ((follow ? ::stat : ::lstat)(path.c_str(), &s) != 0) {
    if (errno == ENOENT) return std::nullopt;
    fail(errno, path, "looked at");
  }
  entry e;
  e.path = path;
  e.kind = kind_of(s.st_mode);
  e.mode = s.st_mode & 0777;
  e.size = e.kind == entry_kind::file ? static_cast<std::uint64_t>(s.st_size) : 0;
  e.sparse = static_cast<std::uint64_t>(s.st_blocks) * 512 < e.size;
  if (e.kind != entry_kind::link) return e;
  std::error_code ec;
  e.target = fs::read_symlink(path, ec).string();
  if (ec == std::errc::no_such_file_or_directory) return std::nullopt;
  if (ec) fail(ec.value(), path, "looked at");
  return e;
}

class host_source : public byte_source {
 public:
  explicit host_source(const entry& e) : file_(e.path, true) {
    meta = e;
    is_stream = file_.is_stream();
    if (!is_stream) meta.size = file_.size();
  }
  std::size_t next(std::span<std::byte> out) override {
    if (is_stream) return file_.read_some(out);
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), meta.size - at_));
    file_.read(at_, out.first(n));
    at_ += n;
    return n;
  }

 private:
  input_file file_;
  std::uint64_t at_ = 0;
};

class host_target : public byte_target {
 public:
  host_target(const std::string& path, const byte_source& from)
      : file_(path, true, from.meta.mode), holes_(from.meta.sparse && from.meta.fill.empty()), fill_(from.meta.fill) {}
  void append(std::span<std::byte> bytes) override {
    // Parts of a sparse file that nobody has written take no space here either.
    const std::size_t step = holes_ ? 64_KiB : bytes.size();
    for (std::size_t i = 0; i < bytes.size(); i += step) {
      const auto part = bytes.subspan(i, std::min(step, bytes.size() - i));
      if (holes_ && part[0] == std::byte{} && std::memcmp(part.data(), part.data() + 1, part.size() - 1) == 0)
        file_.skip(part.size());
      else
        file_.append(part);
    }
  }
  void skip(std::uint64_t bytes) override {
    if (fill_.empty()) return file_.skip(bytes);
    // Whole tiles, and so whole elements.
    std::vector<std::byte> elements;
    while (elements.size() < 64_KiB) elements.insert(elements.end(), fill_.begin(), fill_.end());
    for (std::uint64_t n = 0; bytes != 0; bytes -= n) {
      n = std::min<std::uint64_t>(bytes, elements.size());
      file_.append(std::span(elements).first(n));
    }
  }
  void publish() override { file_.publish(); }

 private:
  output_file file_;
  const bool holes_;
  const std::vector<std::byte> fill_;
};

class host_tree : public file_tree {
 public:
  std::optional<entry> look(const std::string& path) override {
    if (path != "-") return look_at(path, true);
    entry stream;
    stream.path = "-";
    stream.kind = entry_kind::fifo;
    stream.mode = 0644;
    return stream;
  }
  std::vector<entry> list(const std::string& folder) override {
    std::vector<std::string> names;
    std::error_code ec;
    for (fs::directory_iterator i(folder, ec), end; !ec && i != end; i.increment(ec))
      names.push_back(i->path().string());
    if (ec) fail(ec.value(), folder, "listed");
    std::sort(names.begin(), names.end());
    std::vector<entry> all;
    for (const std::string& name : names)
      if (auto e = look_at(name, false)) all.push_back(std::move(*e));
    return all;
  }
  std::unique_ptr<byte_source> open(const entry& e) override { return std::make_unique<host_source>(e); }
  std::unique_ptr<byte_target> make(const std::string& path, const byte_source& from) override {
    auto made = std::make_unique<host_target>(path, from);
    if (path != "-") note_change(path);
    return made;
  }
  std::unique_ptr<byte_target> update(const std::string& path, byte_source&, std::uint64_t) override {
    throw usage_mistake("'" + path + "' is a plain file, and keeps no commits; without --since it is replaced");
  }
  void make_folder(const std::string& path, const entry& like) override {
    if (::mkdir(path.c_str(), like.mode | 0700) != 0 && errno != EEXIST) fail(errno, path, "made");
    note_change(path);
  }
  void finish_folder(const std::string& path, const entry& like) override {
    if ((like.mode & 0700) != 0700 && ::chmod(path.c_str(), like.mode & 0777) != 0) fail(errno, path, "given its mode");
  }
  void make_link(const std::string& path, const std::string& target) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail(errno, path, "replaced");
    if (::symlink(target.c_str(), path.c_str()) != 0) fail(errno, path, "made");
    note_change(path);
  }
  void check_unused(const entry&, const char*) override {}
  void move(const entry& from, const std::string& to) override {
    throw usage_mistake("'" + from.path + "' and '" + to + "' are both plain files; mv(1) is for those");
  }
  void remove(const entry& e) override {
    if ((e.kind == entry_kind::folder ? ::rmdir : ::unlink)(e.path.c_str()) != 0) fail(errno, e.path, "removed");
  }
  void sync() override {
    for (const std::string& folder : changed_) {
      const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      const int error = fd < 0 || (::fsync(fd) != 0 && errno != EINVAL) ? errno : 0;
      if (fd >= 0) ::close(fd);
      if (error != 0 && error != EACCES) fail(error, folder, "synchronised");
    }
    changed_.clear();
  }
  std::string identity() const override { return ""; }

 private:
  /// sync() is to make the name durable.
  void note_change(const std::string& path) {
    std::error_code ec;
    const fs::path there = fs::canonical(fs::path(path).parent_path() / ".", ec);
    if (!ec) changed_.insert(there.string());
  }

  std::set<std::string> changed_;  ///< folders
};

}  // namespace

std::unique_ptr<file_tree> tree_of_host() { return std::make_unique<host_tree>(); }

}  // namespace ooc::tool
