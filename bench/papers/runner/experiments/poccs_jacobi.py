"""POCCS, Table 2: Jacobi's iteration on a plate of 32-bit integers."""

from math import isqrt

from runner import poccs

TITLE = "POCCS, Table 2: Jacobi iteration"

ITERATIONS = 2  # the paper does not say how many it made

TABLE = poccs.Table(
    name="poccs_jacobi", title=TITLE, program="jacobi",
    options=["--type", "i4", "--durable", "--iterations", ITERATIONS],
    size=lambda total: isqrt(total // 8), changes=True,
    what=f"{ITERATIONS} iterations on a plate of 32-bit integers, two arrays.",
    # Tang, Fang, Hu, Zhang, Table 2: points on a side, MiB of both arrays, seconds.
    published=[("1K", 8, 0.7, 0.1), ("2K", 32, 2.6, 0.3), ("3K", 72, 6.1, 3.1), ("4K", 128, 10.8, 5.9),
               ("5K", 200, 18.9, 22.3), ("6K", 288, 28.6, 60.2), ("7K", 392, 39.4, 100.1),
               ("8K", 512, 61.3, 145.6), ("10K", 800, 112.4, None)])


def run(context):
    return poccs.run(context, TABLE)
