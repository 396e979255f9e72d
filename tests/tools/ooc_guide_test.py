"""The commands that docs/guide.md shows do what their comments say.  OOC_COMMAND is the command under test."""

import os
import pathlib
import re
import subprocess

import h5py
import numpy as np

guide = pathlib.Path(__file__).parents[2] / "docs" / "guide.md"
waves, day2, era5 = np.random.random((50, 60)), np.random.random((5, 60)), np.random.random((30, 10, 12)).astype("f4")


def commands(text):
    """Those that make the store, and the others."""
    shown = re.search(r"## Files in and out\n+```sh\n(.*?)```", text, re.DOTALL)[1].splitlines()
    assert shown[1].startswith("ooc init")
    return "\n".join(shown[:2]), "\n".join(shown[2:])


def files(folder):
    np.save(folder / "waves.npy", waves)
    np.save(folder / "day2.npy", day2)
    with h5py.File(folder / "era5.nc", "w") as f:
        f.create_dataset("t2m", data=era5, chunks=(5, 5, 6), compression="gzip")
    with h5py.File(folder / "run.h5", "w") as f:
        f["x"], f["g/y"] = np.arange(10), np.arange(4.0)
    (folder / "notes.txt").write_text("some notes")
    (folder / "logs").mkdir()
    (folder / "logs" / "today").write_text("a log")
    (folder / "here").mkdir()


# What is in the store of whoever reads the guide: an array that can grow, and files that are done with.
prepare = """
ooc import waves.npy all --max-extents 100
ooc import waves.npy runs/7/last.old
"""


def test_the_commands_of_the_guide_do_what_their_comments_say(tmp_path):
    files(tmp_path)
    folders = f"{tmp_path}/disk1,{tmp_path}/disk2"
    make, use = commands(guide.read_text())
    assert "/disk1,/disk2" in make and "ooc://head:7420" in use
    program = "set -eux\n" + make.replace("/disk1,/disk2", folders) + prepare + use.replace("ooc://head:7420", f"local:{folders}")
    ooc = os.environ["OOC_COMMAND"]
    search = {"PATH": os.path.dirname(ooc) + os.pathsep + os.environ["PATH"]}
    done = subprocess.run(
        ["bash", "-c", program], cwd=tmp_path, env=os.environ | search, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr

    def array(path):
        export = [ooc, "--store", f"local:{folders}", "export", "-q", "-f", path, "out.npy"]
        subprocess.run(export, cwd=tmp_path, check=True)
        return np.load(tmp_path / "out.npy")

    assert (array("runs/7/waves") == waves).all()
    assert (array("all") == np.concatenate([waves, day2])).all()
    assert (array("runs/7/t") == era5[:24]).all()
    assert (array("runs/8/x") == np.arange(10)).all() and (array("runs/8/g/y") == np.arange(4)).all()
    with h5py.File(tmp_path / "t.h5") as f:
        assert (f["t"][...] == era5[:24]).all() and f["t"].compression == "gzip"
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    assert (array("attic/last.old") == waves).all()
    assert (tmp_path / "here" / "notes.txt").read_text() == "some notes"
    assert (tmp_path / "here" / "waves").stat().st_size == waves.nbytes
