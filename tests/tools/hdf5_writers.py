"""Files that somebody else is writing, and file systems without locks, for tests."""

import contextlib
import os
import shutil
import subprocess
import sys
import textwrap

import pytest

_writer = """
import sys, h5py, numpy as np
f = h5py.File(sys.argv[1], "w", **{options})
f["x"] = np.arange(3.0)
d = f.create_dataset("grows", data=np.arange(4), maxshape=(None,), chunks=(2,))
f.flush()
if {swmr}:
    f.swmr_mode = True
print("there", flush=True)
for line in sys.stdin:
    d.resize((len(d) + 2,))
    d[-2:] = 9
    d.flush()
    print("more", flush=True)
f.close()
"""


@contextlib.contextmanager
def writer(path, latest=False, swmr=False, **environment):
    """A process that writes an HDF5 file: `x` of 3 doubles, and `grows`, to which a line on its input adds 2."""
    options = {"libver": ("v110", "v110")} if latest or swmr else {}
    program = textwrap.dedent(_writer).format(options=options, swmr=swmr)
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, **environment},
    )
    try:
        assert process.stdout.readline() == "there\n"
        yield process
    finally:
        if process.poll() is None:
            process.communicate()


_no_locks = """
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int flock(int file, int how) {
  char link[64], name[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t n = readlink(link, name, sizeof name);
  if (n < 3 || memcmp(name + n - 3, ".h5", 3) != 0) return syscall(SYS_flock, file, how);
  errno = ERROR;
  return -1;
}
"""


def without_locks(folder, error):
    """The environment in which flock() of files named *.h5 fails so."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("needs a C compiler for a flock() that fails")
    source, library = os.path.join(folder, "no_locks.c"), os.path.join(folder, f"no_locks_{error}.so")
    with open(source, "w") as file:
        file.write(_no_locks.replace("ERROR", error))
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return {"LD_PRELOAD": library}
