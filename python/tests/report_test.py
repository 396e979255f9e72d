"""What a program is told of itself."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import oocarray as ooc


def test_a_report_says_what_was_done_with_each_array(store, budget):
    with store.create("a", (4096, 1024)) as a:  # 32 MiB
        for i in range(0, 4096, 64):
            a[i : i + 64] = i
        assert a.read((64, 0)) == 64
    a = store.open("a", "r")
    for i in range(4096):
        assert a[i, 5] == i // 64 * 64
    text = budget.report()
    assert re.search(r"oocarray: report after [0-9.]+ s, with 3\.[0-9] MiB of memory for blocks, ", text)
    assert re.search(r"array 'a', 32 MiB in blocks of .*\n    read [0-9]+ MiB.*wrote 32 MiB", text)
    assert re.search(r"order: [0-9]+ % from block to block", text)


PROGRAM = """
import sys, time
import oocarray as ooc
{begin}
a = ooc.create("local:" + sys.argv[1], "a", (2048, 1024))
end = time.monotonic() + float(sys.argv[2])
while True:
    for i in range(2048):
        a[i] = i
    if time.monotonic() > end:
        break
{end}
"""


def said_by(tmp_path, seconds="0", begin='rt = ooc.Runtime(memory="4MiB")', end="rt.close()", **environment):
    program = PROGRAM.format(begin=begin, end=end)
    command = [sys.executable, "-c", program, str(tmp_path / "store"), seconds]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return done.stderr


def test_the_environment_asks_for_a_report_at_the_end(tmp_path):
    assert said_by(tmp_path / "1") == ""
    assert "array 'a', 16 MiB" in said_by(tmp_path / "2", OOC_REPORT="1")
    assert said_by(tmp_path / "3", begin="", end="", OOC_MEMORY="4MiB", OOC_REPORT="1").count("array 'a', 16 MiB") == 1
    file = tmp_path / "report"
    for folder in ("4", "5"):
        assert said_by(tmp_path / folder, OOC_REPORT=str(file)) == ""
    assert file.read_text().count("oocarray: report after") == 2
    assert "cannot be written" in said_by(tmp_path / "6", OOC_REPORT=str(tmp_path / "none/report"))


def test_the_environment_asks_for_a_line_while_it_runs(tmp_path):
    said = said_by(tmp_path, seconds="2.5", OOC_PROGRESS="1")
    assert re.search(r"^oocarray: [12] s, read .* \(.*/s\), wrote .* \(.*/s\), waiting [0-9]+ %; 'a' at [0-9]+ %$", said, re.M)
    assert "report" not in said


def test_progress_true_shows_how_far_a_call_has_come(store, budget, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)  # as where it is not installed
    with store.create("a", 1_000_000) as a:
        a[...] = np.arange(1_000_000)[::-1]
        ooc.sort(a, progress=True)
        shown = capfd.readouterr().err
        assert shown.startswith("\r") and shown.endswith("\r100 %\n")
        ooc.sort(a, progress=None)
        ooc.sort(a, progress=False)
        assert capfd.readouterr().err == ""
        with pytest.raises(TypeError, match="True for a bar"):
            ooc.sort(a, progress=3)


def test_progress_true_is_a_bar_of_tqdm_where_that_is_installed(store, budget, capfd):
    pytest.importorskip("tqdm")
    with store.create("a", 1_000_000) as a:
        a[...] = 1
        assert ooc.sum(a, progress=True) == 1_000_000
        assert "100%" in capfd.readouterr().err
