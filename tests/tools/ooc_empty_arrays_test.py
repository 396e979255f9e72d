"""Arrays without rows, in every format that has them, and the commands on them."""

import h5py
import numpy as np
import pytest

from ooc_shell import Shell


@pytest.fixture
def shell(tmp_path):
    return Shell(str(tmp_path))


def save(shell, name, values):
    np.save(f"{shell.folder}/{name}", values)


def test_files_without_rows_go_in_and_out(shell):
    empty = np.zeros((0, 3), "f4")
    save(shell, "c.npy", empty)
    save(shell, "f.npy", np.asfortranarray(empty))
    np.savez(f"{shell.folder}/z.npz", a=empty)
    np.savez_compressed(f"{shell.folder}/d.npz", a=empty)
    open(f"{shell.folder}/a.raw", "wb").close()
    with shell.open("h.h5", "w") as f:
        f.create_dataset("a", (0, 3), "f4", maxshape=(None, 3), compression="gzip").attrs["units"] = "m"
    with shell.open("n.nc", "w") as f:
        f.create_dataset("time", (0,), "f8", maxshape=(None,)).make_scale("time")
        a = f.create_dataset("a", (0, 3), "f4", maxshape=(None, 3))
        a.dims[0].attach_scale(f["time"])
    for name in ["c.npy", "f.npy", "z.npz", "d.npz", "h.h5"]:
        shell.ok("import", name, f"of/{name}")
    shell.ok("import", "a.raw", "of/raw", "--type", "f4", "--shape", "0x3")
    shell.ok("import", "n.nc", "of/n/")
    shell.ok("import", "c.npy", "of/tiles", "--tile", "4x2", "--max-extents", "10x3")
    for path in ["c.npy", "f.npy", "z.npz", "d.npz", "h.h5", "raw", "n/a", "tiles"]:
        path = f"of/{path}"
        assert shell.array(path).shape == (0, 3) and shell.array(path).dtype == "f4"
        for out in ["o.h5", "o.nc", "o.npy"]:
            shell.ok("export", "-f", path, out)
        for out in ["o.h5", "o.nc"]:
            with shell.open(out) as f:
                ((name, shape),) = [(d.name, d.shape) for d in f.values() if d.ndim == 2]
                assert shape == (0, 3)
            shell.ok("import", "-f", out, "again", "--dataset", name)
            assert shell.array("again").shape == (0, 3)
        shell.ok("export", "-f", path, "o.h5", "--deflate", "4")
        assert np.load(f"{shell.folder}/o.npy").shape == (0, 3)
    assert shell.array("of/n/time").shape == (0,)
    assert shell.attributes("of/h.h5")["units"] == "m"


def test_rows_are_appended_to_an_array_that_begins_without_any(shell):
    save(shell, "a.npy", np.zeros((0, 3)))
    save(shell, "b.npy", np.arange(6.0).reshape(2, 3))
    for options in [(), ("--tile", "2x2")]:
        most = "4x3" if options else "4"
        shell.ok("import", "-f", "a.npy", "log", "--max-extents", most, *options)
        shell.ok("import", "--append", "a.npy", "log")
        assert shell.array("log").shape == (0, 3)
        shell.ok("import", "--append", "b.npy", "log")
        shell.ok("import", "--append", "b.npy", "log")
        assert shell.array("log").tolist() == np.vstack([np.arange(6.0).reshape(2, 3)] * 2).tolist()
        shell.refused("import", "--append", "b.npy", "log", names=["may have 4 rows"])


def test_commands_take_an_array_without_rows(shell):
    save(shell, "a.npy", np.zeros((0, 3)))
    shell.ok("import", "a.npy", "a", "--max-extents", "5")
    assert b"f8 0x3" in shell.ok("ls", "-l") and b"f8 0x3" in shell.ok("stat", "a")
    for command in [("du", "a"), ("du", "-b", "a"), ("verify",), ("cp", "a", "b"), ("mv", "b", "c"), ("cat", "a")]:
        shell.ok(*command)
    assert shell.array("c").shape == (0, 3)
    shell.ok("truncate", "-s", "48", "c")
    assert shell.array("c").shape == (2, 3)
    shell.refused("picture", "a", "a.png", names=["0x3"])
    shell.refused("export", "a", "o.npy", "--box", "0:1,:", names=["0x3"])
    shell.ok("rm", "a")


def test_only_the_first_extent_may_be_0(shell):
    save(shell, "a.npy", np.zeros((3, 0)))
    shell.refused("import", "a.npy", "a", names=["'a.npy'", "3x0", "only the first"])
    with shell.open("a.h5", "w") as f:
        f["a"] = np.zeros((3, 0))
        f["null"] = h5py.Empty("f4")
    shell.refused("import", "a.h5", "a", "--dataset", "a", names=["'a.h5'", "3x0", "only the first"])
    shell.refused("import", "a.h5", "a", "--dataset", "null", names=["no shape"])
