"""POCCS, Table 1: the inner product of two vectors of 32-bit integers."""

from runner import poccs

TITLE = "POCCS, Table 1: inner product"

TABLE = poccs.Table(
    name="poccs_inner", title=TITLE, program="inner_product", options=["--type", "i4"],
    size=lambda total: total // 8, changes=False,
    what="Inner product of two vectors of 32-bit integers.",
    # Tang, Fang, Hu, Zhang, Table 1: elements of a vector, MiB of both, seconds.
    published=[("4M", 32, 0.9, 0.2), ("8M", 64, 2.3, 0.4), ("16M", 128, 6.3, 1.5), ("32M", 256, 14.9, 22.2),
               ("64M", 512, 34.4, 76.4), ("128M", 1024, 68.9, None), ("256M", 2048, 158.3, None)])


def run(context):
    return poccs.run(context, TABLE)
