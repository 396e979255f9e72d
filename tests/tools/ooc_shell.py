"""The command `ooc` in a folder with a store of its own, for tests.  OOC_COMMAND is the command under test."""

import io
import json
import os
import subprocess

import h5py
import numpy as np


class Shell:
    def __init__(self, folder):
        self.folder = folder
        self.seen = None  # what is there, as far as nothing has changed it since
        self.store = f"local:{folder}/n0,{folder}/n1"
        self.ok("init")

    def run(self, *arguments, **options):
        return subprocess.run(
            [os.environ["OOC_COMMAND"], "--store", self.store, *arguments], cwd=self.folder, capture_output=True, **options
        )

    def ok(self, *arguments):
        self.seen = None
        done = self.run(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    def refused(self, *arguments, names):
        """One line that names everything in `names`; neither the store nor the folder has anything new."""
        names_before = sorted(os.listdir(self.folder))
        before = self.seen or self.ok("ls", "-r", "--json")
        done = self.run(*arguments)
        error = done.stderr.decode()
        assert done.returncode == 1, arguments
        assert error.count("\n") == 1 and error.startswith("ooc: "), error
        for name in names:
            assert name in error
        after = self.ok("ls", "-r", "--json")
        assert after == before and sorted(os.listdir(self.folder)) == names_before
        self.seen = after

    def array(self, path):
        data = self.ok("export", path, "-", "--format", "npy")
        return np.load(io.BytesIO(data))

    def attributes(self, path):
        return json.loads(self.ok("stat", "--json", path))["attributes"]

    def open(self, name, mode="r", **options):
        return h5py.File(os.path.join(self.folder, name), mode, **options)
