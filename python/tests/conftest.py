"""A store and a small budget for each test."""

import gc

import pytest

import oocarray


def pytest_collection_finish():
    gc.freeze()  # modules and tests live to the end: each test's collection need not go through them


@pytest.fixture
def store(tmp_path):
    return oocarray.open_store(f"local:{tmp_path}/store", workers=1, staging="64KiB")


@pytest.fixture
def budget():
    """A runtime of 4 MiB; arrays beyond that do not fit."""
    rt = oocarray.Runtime(memory="4MiB")
    yield rt
    gc.collect()  # views in cycles
    rt.close()


@pytest.fixture
def small_budget():
    """A runtime of 320 KiB."""
    rt = oocarray.Runtime(memory="320KiB")
    yield rt
    gc.collect()
    rt.close()
