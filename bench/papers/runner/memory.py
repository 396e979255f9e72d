"""Swap that is taken away again, and an empty page cache."""

import os
import subprocess
from pathlib import Path


class Swap:
    """A swap file of `size` bytes for the length of a `with` block; `why_not` if there is none."""

    def __init__(self, folder, size):
        self.file = Path(folder) / "swap"
        self.size = size
        self.why_not = None

    def __enter__(self):
        try:
            with open(self.file, "wb") as f:
                os.fchmod(f.fileno(), 0o600)
                os.posix_fallocate(f.fileno(), 0, self.size)
            for command in ("mkswap", "swapon"):
                subprocess.run([command, self.file], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as e:
            self.why_not = "no swap here: " + (getattr(e, "stderr", "") or str(e)).strip()
            self.file.unlink(missing_ok=True)
        return self

    def __exit__(self, *_):
        if self.why_not is None:
            subprocess.run(["swapoff", self.file], capture_output=True)
        self.file.unlink(missing_ok=True)
        return False


def drop_caches():
    """Writes back and empties the page cache; False where this is not allowed."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError:
        return False
    return True


def forget(folder):
    """Takes the files below `folder` out of the page cache, after writing back what is dirty of them."""
    for path in Path(folder).rglob("*"):
        if not path.is_file():
            continue
        try:
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:  # a server's temporary file, removed meanwhile
            continue
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)
