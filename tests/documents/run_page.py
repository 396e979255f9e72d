"""Does what a page shows: its commands, in order, must print what the page says they print.

    run_page.py PAGE FOLDER [NAME=PROGRAM ...]

A block of code whose first line is a comment with a name (`# first.py`) becomes a file of that name.  Programs in C++ are
built beforehand, from the page as well, and are given by their names.  A line `$ COMMAND` of a block `console` is a
command, the lines below it are what it prints; `...` stands for any number of lines.  PATH has `ooc`.

Where the page needs what is not there (a program that was not built, the Python package, mpi4py), SKIPPED is said, and why.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np

scripts = pathlib.Path(__file__).resolve().parents[2] / "scripts"


def blocks(text):
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def files_of_readers(page, folder):
    """What whoever reads the page has already."""
    if page.stem == "larger-than-memory":
        np.save(folder / "big.npy", np.repeat(np.arange(2048.0)[:, None], 4096, axis=1))
    if page.stem == "packed":
        np.save(folder / "smooth.npy", np.repeat(np.arange(500.0)[:, None], 1000, axis=1))
    if page.stem == "hdf5":
        import h5py
        with h5py.File(folder / "era5.nc", "w") as f:
            f.create_dataset("t2m", data=np.ones((30, 10, 12), "f4"), chunks=(5, 5, 6), compression="gzip")
        with h5py.File(folder / "run.h5", "w") as f:
            f["x"], f["g/y"] = np.arange(10), np.arange(4.0)


def commands(block):
    """Pairs of a command and what it is to print."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, said = part.partition("\n")
        yield command, said


def is_like(said, shown):
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line + "\n") for line in shown.splitlines())
    return re.fullmatch(pattern, said) is not None


def run(block, folder, environment):
    """All commands of a block in one shell.  Yields faults."""
    wanted = list(commands(block))
    mark = "-- end of a command --"
    program = "\n".join(f"{command}\necho '{mark}' $?" for command, _ in wanted)
    done = subprocess.run(["bash", "-c", program], cwd=folder, env=environment, capture_output=True, text=True, timeout=100)
    outputs = re.split(rf"^{mark} (\d+)\n", done.stdout, flags=re.MULTILINE)
    for (command, shown), said, status in zip(wanted, outputs[::2], outputs[1::2]):
        if status != "0" or not is_like(said, shown):
            yield f"$ {command}\nstatus {status}, printed:\n{said}and on standard error:\n{done.stderr}instead of:\n{shown}"
    if len(outputs) // 2 < len(wanted):
        yield f"$ {wanted[len(outputs) // 2][0]}\ndid not end: {done.stdout}and on standard error:\n{done.stderr}"


def missing(text, programs):
    shown = [(kind, re.match(r"(?://|#) (\w+)\.(cpp|py)\n", code)) for kind, code in blocks(text)]
    for kind, name in shown:
        if kind == "cpp" and name and name[1] not in programs:
            return f"{name[1]} was not built"
    if any(kind == "python" and name for kind, name in shown):
        found = subprocess.run([sys.executable, "-c", "import oocarray"], capture_output=True)
        if found.returncode:
            return "the Python package was not built"
    return "" if shutil.which("ooc") else "ooc was not built"


def main():
    page, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    programs = dict(given.split("=", 1) for given in sys.argv[3:])
    text = page.read_text()
    if why := missing(text, programs):
        print(f"SKIPPED: {why}")
        return 0
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/mpirun").write_text(f'#!/bin/sh\nshift; exec "{scripts}/ooc-mpirun" "$@"\n')  # mpirun -n 4 PROGRAM
    (folder / "bin/mpirun").chmod(0o755)
    (folder / "bin/python3").symlink_to(sys.executable)
    # The one below finds the true mpirun by its path.
    environment = os.environ | {"OOC_MPIRUN": os.environ.get("OOC_MPIRUN") or shutil.which("mpirun") or "mpirun",
                                "PATH": f"{folder}/bin{os.pathsep}{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
    files_of_readers(page, folder)
    for name, program in programs.items():
        (folder / name).symlink_to(program)
    faults, ran = [], 0
    for kind, code in blocks(text):
        name = re.match(r"# ([\w.]+\.py)\n", code)
        if kind == "python" and name:
            (folder / name[1]).write_text(code)
        if kind == "console":
            faults += run(code, folder, environment)
            ran += 1
    print("\n".join(faults) or f"{ran} blocks")
    if not faults:
        shutil.rmtree(folder)
    return bool(faults) or not ran


sys.exit(main())
