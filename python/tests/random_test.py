"""Random operations on arrays beyond the budget, compared with the same on plain arrays.

OOC_TEST_SEED replays one; scripts/test --long lets Hypothesis look for more (property_test.py).
"""

import os
import random

import numpy as np
import pytest

import operations

seed = int(os.environ.get("OOC_TEST_SEED") or random.SystemRandom().randrange(1 << 32))


@pytest.mark.parametrize("case", range(8))
def test_random_operations_give_what_they_give_in_memory(store, small_budget, case):
    rng = np.random.default_rng([seed, case])
    print(f"OOC_TEST_SEED={seed}, case {case}")
    operations.compare(store, rng, steps=12)
    assert small_budget.stats["evictions"] > 0
