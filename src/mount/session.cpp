#include "mount/session.hpp"

#include <sys/stat.h>

#include <memory>
#include <vector>

#include "oocarray/error.hpp"

namespace ooc::mount {

namespace {

// Threads that may wait for the metadata service at the same time.
constexpr unsigned most_threads = 32, idle_threads = 4;

struct arguments {
  explicit arguments(const mount_options& o) {
    add("ooc");
    std::string name;  // a comma would end the option
    for (const char c : o.url) name += c == ',' ? std::string("\\,") : std::string(1, c);
    add("-o"
        "fsname=" +
        name);
    add("-o"
        "subtype=ooc");
    add("-o"
        "default_permissions");
    if (o.read_only)
      add("-o"
          "ro");
    for (const std::string& f : o.fuse) add("-o" + f);
  }
  ~arguments() { fuse_opt_free_args(&all); }
  arguments(const arguments&) = delete;
  arguments& operator=(const arguments&) = delete;

  void add(const std::string& a) {
    if (fuse_opt_add_arg(&all, a.c_str()) != 0) throw std::bad_alloc();
  }
  fuse_args all = FUSE_ARGS_INIT(0, nullptr);
};

[[noreturn]] void refuse(const mount_options& o, const std::string& why) {
  throw usage_error({EIO, std::generic_category()}, "'" + o.folder + "' " + why);
}

}  // namespace

void serve(const ooc::store& store, const mount_options& options, const std::function<void()>& mounted) {
  ::umask(0);
  file_system fs(store.core(), options);
  arguments args(options);
  const fuse_lowlevel_ops ops = file_system::operations();
  const std::unique_ptr<fuse_session, void (*)(fuse_session*)> session(
      fuse_session_new(&args.all, &ops, sizeof ops, &fs), fuse_session_destroy);
  if (!session) refuse(options, "cannot be mounted: libfuse does not take the options (-o)");
  if (fuse_set_signal_handlers(session.get()) != 0) refuse(options, "cannot be mounted: no signal handlers");
  if (fuse_session_mount(session.get(), options.folder.c_str()) != 0) {
    fuse_remove_signal_handlers(session.get());
    refuse(options,
           "cannot be mounted: see the line before; it takes /dev/fuse, the program fusermount3 where the "
           "caller is not root, and for -o allow_other a line user_allow_other in /etc/fuse.conf");
  }
  mounted();
  const std::unique_ptr<fuse_loop_config, void (*)(fuse_loop_config*)> config(fuse_loop_cfg_create(),
                                                                              fuse_loop_cfg_destroy);
  fuse_loop_cfg_set_max_threads(config.get(), most_threads);
  fuse_loop_cfg_set_idle_threads(config.get(), idle_threads);
  (void)fuse_session_loop_mt(session.get(), config.get());
  fs.finish();  // answers need the session
  fuse_session_unmount(session.get());
  fuse_remove_signal_handlers(session.get());
}

}  // namespace ooc::mount
