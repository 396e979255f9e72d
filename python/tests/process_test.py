"""What else is in the process: faulthandler, forked children, threads, the end."""

import os
import pickle
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

start = """
import faulthandler, gc, os, sys
import numpy as np
{before}
import oocarray as ooc
rt = ooc.Runtime(memory="4MiB")
a = ooc.create("local:" + sys.argv[1], "a", (1024, 1024))
v = np.asarray(a)
v[...] = 1
def use():
    global v
    v += 1
    print(v[::100, ::100].sum() == v[0, 0] * 11 * 11)
"""


def run(tmp_path, program, before="", options=()):
    """The exit status of a program, and what it says."""
    code = start.format(before=before) + textwrap.dedent(program)
    p = subprocess.run(
        [sys.executable, "-B", *options, "-c", code, str(tmp_path / "store")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return p.returncode, p.stdout, p.stderr


# How a program gets at faulthandler, and when.
faulthandlers = {
    "before": ("faulthandler.enable()", ""),
    "after": ("", "faulthandler.enable()"),
    "behind our back": ("from faulthandler import enable", "enable(); a[0]"),
    "switched off": ("faulthandler.enable()", "faulthandler.disable()"),
    "on and off": ("", "faulthandler.enable(); faulthandler.disable(); faulthandler.enable()"),
}


@pytest.mark.parametrize("before, after", faulthandlers.values(), ids=faulthandlers)
def test_faults_work_beside_faulthandler(tmp_path, before, after):
    status, said, errors = run(tmp_path, after + "\nuse()", before)
    assert (status, said, errors) == (0, "True\n", "")


def test_a_view_survives_a_faulthandler_that_nobody_saw_coming(tmp_path):
    status, said, errors = run(tmp_path, "enable()\nuse()", "from faulthandler import enable")
    assert (status, said) == (0, "True\n")
    assert "Fatal Python error" in errors and "was no crash" in errors


@pytest.mark.parametrize("before, after", faulthandlers.values(), ids=faulthandlers)
def test_a_crash_ends_the_process_and_faulthandler_reports_it(tmp_path, before, after):
    status, said, errors = run(tmp_path, after + "\nuse()\nimport ctypes\nctypes.string_at(8)", before)
    assert (status, said) == (-11, "True\n")
    assert errors.count("Fatal Python error: Segmentation fault") == ("disable()" not in after[-10:])


def test_threads_that_block_every_signal_touch_arrays(tmp_path):
    program = """
    import signal, threading
    def work(block, sums):
        if block: signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        told.wait()
        sums.append(v.sum())
    sums, told = [], threading.Event()
    libc, every, before = ctypes.CDLL(None), (ctypes.c_ulong * 16)(*[2**64 - 1] * 16), (ctypes.c_ulong * 16)()
    libc.pthread_sigmask(signal.SIG_BLOCK, every, before)  # as an extension whose threads are to get no signals
    made_deaf = threading.Thread(target=work, args=(False, sums))
    made_deaf.start()
    libc.pthread_sigmask(signal.SIG_SETMASK, before, None)
    deaf = threading.Thread(target=work, args=(True, sums))
    deaf.start()
    a.writeback()
    a.invalidate()
    v = np.asarray(a)
    told.set()
    for t in (made_deaf, deaf):
        t.join()
    print([float(s) for s in sums])
    """
    status, said, errors = run(tmp_path, program, "import ctypes")
    assert (status, said, errors) == (0, "[1048576.0, 1048576.0]\n", "")


def test_a_view_takes_faults_back_from_a_library_that_took_them(tmp_path):
    program = """
    libc = ctypes.CDLL(None)
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda n: os._exit(99))
    for taken in (11, 7):
        libc.signal(taken, handler)
    a.invalidate(discard=True)
    print(a[...].sum())
    """
    status, said, errors = run(tmp_path, "a.writeback()\n" + textwrap.dedent(program), "import ctypes")
    assert (status, said, errors) == (0, "1048576.0\n", "")


def test_a_forked_child_is_told_what_to_do(tmp_path):
    program = """
    import multiprocessing
    fork = multiprocessing.get_context("fork")
    def touch(): print(v[500, 500])
    def call():
        for f in a.writeback, lambda: a[0, 0]:
            try:
                f()
            except ooc.Busy as e:
                print(e)
    a[0, 0] *= 1  # it is in memory
    for f in (call, touch):
        child = fork.Process(target=f)
        child.start()
        child.join(20)
        print(child.exitcode)
    use()
    """
    status, said, errors = run(tmp_path, program)
    assert status == 0
    assert "'spawn'" in said and said.count("multiprocessing_context") == 2 and said.endswith("0\n-11\nTrue\n")
    assert "array 'a'" in errors and "forked child" in errors


forks = {
    "the parent has imported the package": "",
    "the parent has a store": "s = ooc.open_store(U); s.list()",
    "the parent has had an array, and its runtime is closed": """
s = ooc.open_store(U)
with s.open("x") as a: a[0] = 0
del a
ooc.runtime().close()
""",
}


@pytest.mark.parametrize("before", forks.values(), ids=forks)
def test_forked_workers_open_what_their_parent_has_not_open(tmp_path, before):
    make = "import sys, numpy as np, oocarray as ooc; ooc.create('local:' + sys.argv[1], 'x', 8, 'i8')[...] = np.arange(8)"
    subprocess.run([sys.executable, "-c", make, str(tmp_path / "store")], check=True, timeout=60)
    program = f"""
import multiprocessing, sys
import oocarray as ooc
U = "local:" + sys.argv[1]
{before}
A = None
def get(i):
    global A
    A = A or [ooc.open(U, "x", "r")]
    return int(A[0][i])
def put(i):
    with ooc.create(U, f"y/{{i}}", 100, fill=i) as y:
        y[0] += 1
fork = multiprocessing.get_context("fork")
with fork.Pool(2) as pool:
    print(pool.map(get, range(8)))
    pool.map(put, range(4))
print([float(ooc.open(U, f"y/{{i}}", "r")[...].sum()) for i in range(4)], [get(i) for i in range(8)])
"""
    p = subprocess.run(
        [sys.executable, "-B", "-c", program, str(tmp_path / "store")], capture_output=True, text=True, timeout=120
    )
    assert (p.returncode, p.stderr) == (0, "")
    assert p.stdout == f"{list(range(8))}\n[1.0, 101.0, 201.0, 301.0] {list(range(8))}\n"


def test_a_forked_child_is_told_that_its_parents_store_is_not_for_it(tmp_path):
    program = """
import os, sys
import oocarray as ooc
s = ooc.open_store("local:" + sys.argv[1])
if (child := os.fork()) == 0:
    for call in (s.list, lambda: s.create("a", 3)):
        try:
            call()
        except ooc.Busy as e:
            print(e, flush=True)
    print(ooc.open_store(s.url).list(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(s.create("a", 3).shape)
"""
    p = subprocess.run(
        [sys.executable, "-B", "-c", program, str(tmp_path / "store")], capture_output=True, text=True, timeout=60
    )
    assert (p.returncode, p.stderr) == (0, "")
    assert p.stdout.count("was forked: open it again here") == 2 and p.stdout.endswith("[]\n(3,)\n")


def test_what_a_worker_has_modified_when_it_ends_is_written(tmp_path):
    program = """
import multiprocessing, sys
import oocarray as ooc
def work():
    global a
    a = ooc.create("local:" + sys.argv[1], "a", 100)
    a[7] = 42
p = multiprocessing.get_context("fork").Process(target=work)
p.start()
p.join()
print(p.exitcode, ooc.open("local:" + sys.argv[1], "a", "r")[7])
"""
    p = subprocess.run(
        [sys.executable, "-B", "-c", program, str(tmp_path / "store")], capture_output=True, text=True, timeout=60
    )
    assert (p.returncode, p.stdout, p.stderr) == (0, "0 42.0\n", "")


def test_handlers_of_another_library_are_put_behind_ours(tmp_path):
    program = """
    import ctypes
    libc = ctypes.CDLL(None)
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda n: os._exit(99))
    libc.signal(11, handler)
    ooc.reclaim_faults()
    use()
    """
    assert run(tmp_path, program) == (0, "True\n", "")


def test_what_is_modified_at_the_end_of_the_interpreter_is_written(tmp_path):
    status, _, errors = run(tmp_path, "v[7, 7] = 42")
    assert (status, errors) == (0, "")
    status, said, errors = run(tmp_path, "", before="""
import oocarray
print(oocarray.open("local:" + sys.argv[1], "a", "r")[7, 7])
sys.exit()
""")
    assert (status, said, errors) == (0, "42.0\n", "")


def test_threads_share_an_array(store, budget):
    a = store.create("a", (1024, 1024), "i8")
    v = np.asarray(a)

    def work(k):
        for i in range(k, 1024, 4):
            v[i] = i
            if i % 64 == k:
                a.writeback()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert (v == np.arange(1024)[:, None]).all()


def test_memory_stays_near_the_budget_however_large_the_array_is(tmp_path):
    program = """
    def high():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) >> 10
    before = high()
    big = a.store.create("big", (8192, 2048))  # 128 MiB, in 4 MiB
    big[...] = 3
    assert ooc.sum(big) == 3 * big.size and np.sum(big, axis=0)[7] == 3 * 8192
    np.multiply(big, 2, out=big)
    flat = a.store.create("flat", 4 << 20)  # 32 MiB
    flat[...] = np.broadcast_to(1.0, flat.shape)
    ooc.sort(flat)
    print(big[5, 5], high() - before < 48)
    """
    assert run(tmp_path, program) == (0, "6.0 True\n", "")


def test_a_pickled_copy_is_read_by_another_process(store, budget, tmp_path):
    a = store.create("a", (100,))
    a[...] = 3
    (tmp_path / "p").write_bytes(pickle.dumps({"a": a[10:20]}))
    code = f"import pickle; print(pickle.load(open({str(tmp_path / 'p')!r}, 'rb'))['a'].sum())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "30.0\n"


@pytest.mark.parametrize("gigabytes", [1, 1.5, 2, 3, 3.5, 4, 8, 16])
def test_under_a_limit_of_addresses_an_array_works_or_is_refused_with_the_remedy(tmp_path, gigabytes):
    program = f"""
    import resource, sys
    resource.setrlimit(resource.RLIMIT_AS, ({int(gigabytes * 1e9)}, resource.RLIM_INFINITY))
    import oocarray as ooc
    try:
        a = ooc.create("local:" + sys.argv[1], "a", (64 << 20,))
    except MemoryError as e:
        sys.exit(f"refused: {{e}}")
    a[:: 1 << 20] = 1
    a.writeback()
    a.invalidate()
    print(a[:: 1 << 20].sum())
    """
    p = subprocess.run(
        [sys.executable, "-B", "-c", textwrap.dedent(program), str(tmp_path / "store")],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # whose threads take addresses for each processor
    )
    if gigabytes > 2 or p.returncode == 0:
        assert (p.returncode, p.stdout, p.stderr) == (0, "64.0\n", "")
    else:
        assert p.returncode == 1
        assert p.stderr.startswith("refused: array 'a'") and "(ulimit -v)" in p.stderr and "raise that limit" in p.stderr


def test_a_view_that_has_outlived_its_array_keeps_the_runtime(tmp_path):
    import oocarray as ooc

    rt = ooc.Runtime(memory="4MiB")
    v = ooc.create(f"local:{tmp_path}/s", "a", 1000, fill=2.0)[...]  # nothing else refers to the array
    with pytest.raises(BufferError, match="'a'"):
        rt.close()
    assert v.sum() == 2000
    del v
    rt.close()


def test_the_first_views_may_be_made_by_several_threads_at_once(tmp_path):
    program = """
import sys, threading, oocarray as ooc
a = ooc.create("local:" + sys.argv[1], "a", 1000)
together = threading.Barrier(3)
def view():
    together.wait()
    assert a[...].sum() == 0
threads = [threading.Thread(target=view) for _ in range(3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
"""
    done = subprocess.run([sys.executable, "-B", "-c", program, str(tmp_path / "s")], timeout=60)
    assert done.returncode == 0
