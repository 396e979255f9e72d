"""What every experiment gets: where to build, write and measure, and how to say how far it is."""

import shutil
import sys
import tempfile
import time
from pathlib import Path


class Made:
    """A context manager: `_make` makes it; `__exit__` takes it away, also what was made before a failure."""

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self


class Context:
    """`scale` is "small" or "paper"; `interface` is "native" or "mpi-io"; `out` holds the results, `work` is the scratch folder (a disk)."""

    def __init__(self, build, out, work, scale, interface="native"):
        self.build, self.out, self.scale, self.interface = Path(build), Path(out), scale, interface
        self.work = Path(tempfile.mkdtemp(prefix="oocarray-papers.", dir=work))
        self._began = time.monotonic()
        self._experiment = ""

    @property
    def small(self):
        return self.scale == "small"

    def program(self, name):
        """A program of the build tree: "tools/ooc", "examples/jacobi", "bench/papers/regions"."""
        return self.build / name

    def scratch(self, name):
        """A new empty folder on the disk that is measured."""
        return Path(tempfile.mkdtemp(prefix=name + ".", dir=self.work))

    def drop(self, folder):
        shutil.rmtree(folder, ignore_errors=True)

    def begin(self, experiment):
        self._experiment = experiment

    def say(self, text):
        """A line of progress."""
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        print(f"[{minutes:2}:{seconds:02}] {self._experiment}: {text}", file=sys.stderr, flush=True)

    def close(self):
        self.drop(self.work)
