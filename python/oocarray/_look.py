"""Looking at arrays of any size with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional, Tuple

import numpy as np

from ._index import keys_of

if TYPE_CHECKING:
    from ._array import Array


def _read(array: "Array", index: Tuple[Any, ...]) -> np.ndarray:
    """``array[index]`` for integers and slices of positive step: a copy, and no block of it in memory.

    In row-major order one strided request reads the elements and no others.  Files in place and files in tiles are
    read as by `Array.read`.
    """
    shape, size = array.shape, array.itemsize
    path = array.current_path
    if array._store is None or array._store._core.entry(path)["tile"]:
        return array.read(index)
    if array.writable and array.dirty_blocks:
        array.writeback()  # the request is answered by the I/O nodes
    offset, levels, counts = 0, [], []
    step = size
    for extent, k in reversed(list(zip(shape, index))):
        if isinstance(k, slice):
            first, last, every = k.indices(extent)
            n = len(range(first, last, every))
            levels.append((n, every * step))
            counts.append(n)
            offset += first * step
        else:
            offset += k * step
        step *= extent
    if 0 in counts:
        return np.empty(counts[::-1], array.dtype)
    data = array._store._core.read_strided(path, offset, size, levels[::-1])
    return np.frombuffer(data, dtype=array.dtype).reshape(counts[::-1])


class SliceViewer:
    """A picture of one or two dimensions of an array, by matplotlib; `view` makes one.

    It shows every k-th element, as many as it has pixels.  When the picture is zoomed or moved, what is then shown is
    read, and nothing else.  The other dimensions have a slider each.

    Attributes
    ----------
    figure, axes, image
        As matplotlib knows them.
    data : numpy.ndarray
        The elements that were read last.
    index : tuple
        What they are: ``data == array[index]``.
    """

    def __init__(self, array: "Array", index: Any, pixels: int, axes: Any, **options: Any) -> None:
        try:
            import matplotlib.image
            import matplotlib.pyplot as plt
        except ImportError as e:
            raise ImportError("view() draws with matplotlib, which is not installed: pip install matplotlib") from e
        if array.dtype.kind not in "biufc":
            raise TypeError(f"array '{array.path}' has elements of type {array.dtype}, and a picture shows numbers")
        if not 1 <= pixels <= 16384:
            raise ValueError(f"pixels={pixels} is not 1 to 16384")
        self.array = array
        self.pixels = pixels
        self.index: Tuple[Any, ...] = ()
        self.data = np.empty((0, 0))
        self._fixed, self._shown = _dimensions(array, index)
        self._range: Optional[Tuple[float, float]] = None
        others = [] if axes is not None or index is not None else [d for d in range(array.ndim) if d not in self._shown]
        if axes is None:
            self.figure, axes = plt.subplots()
        else:
            self.figure = axes.figure
        self.axes = axes

        viewer = self

        class Image(matplotlib.image.AxesImage):
            """Reads what is shown when it is drawn: once, whatever has changed since."""

            def draw(self, renderer: Any) -> None:
                viewer._load()
                super().draw(renderer)

        options = {"interpolation": "nearest", "cmap": "viridis", "origin": "upper", **options}
        self.image = Image(axes, **options)
        lower, upper = self._bounds(0), self._bounds(1)
        axes.set_xlim(upper[0] - 0.5, upper[1] - 0.5)
        axes.set_ylim(lower[1] - 0.5, lower[0] - 0.5)
        axes.add_image(self.image)
        axes.set_aspect("auto")
        axes.set_title(array.path)
        if len(self._shown) == 2:
            axes.set_ylabel(f"dimension {self._shown[0]}")
        else:
            axes.set_yticks([])
        axes.set_xlabel(f"dimension {self._shown[-1]}")
        self._load()
        self.sliders = [self._slider(d, row) for row, d in enumerate(others)]

    def _bounds(self, k: int) -> Tuple[int, int]:
        """First and last of the rows (0) or columns (1) that there are."""
        if k == 0 and len(self._shown) == 1:
            return 0, 1
        bounds = self._fixed[self._shown[-1 if k else 0]]
        return bounds.start, bounds.stop

    def _slider(self, dimension: int, row: int) -> Any:
        from matplotlib.widgets import Slider

        self.figure.subplots_adjust(bottom=0.16 + 0.06 * (row + 1))
        place = self.figure.add_axes((0.25, 0.02 + 0.06 * row, 0.6, 0.04))
        slider = Slider(place, f"dimension {dimension}", 0, self.array.shape[dimension] - 1,
                        valinit=self._fixed[dimension], valstep=1)
        slider.on_changed(lambda value: self.move(dimension, int(value)))
        return slider

    def move(self, dimension: int, index: int) -> None:
        """Shows another index of a dimension that has no axis."""
        if dimension in self._shown:
            raise ValueError(f"dimension {dimension} has an axis: set its limits")
        extent = self.array.shape[dimension]
        if not 0 <= index < extent:
            raise IndexError(f"index {index} is outside the extent {extent} of dimension {dimension}")
        self._fixed[dimension] = index
        self.figure.canvas.draw_idle()

    def _window(self, k: int) -> slice:
        """The rows (0) or columns (1) that the axes show, and every how many-th of them."""
        first, last = self._bounds(k)
        low, high = sorted(self.axes.get_xlim() if k else self.axes.get_ylim())
        # Element i is drawn from i - 0.5 to i + 0.5.
        begin = min(max(first, int(np.floor(low + 0.5))), last - 1)
        end = max(min(last, int(np.ceil(high + 0.5))), begin + 1)
        return slice(begin, end, -(-(end - begin) // self.pixels))

    def _load(self) -> None:
        rows, columns = self._window(0), self._window(1)
        index = list(self._fixed)
        index[self._shown[-1]] = columns
        if len(self._shown) == 2:
            index[self._shown[0]] = rows
        if tuple(index) == self.index:
            return
        data = _read(self.array, tuple(index))
        self.index, self.data = tuple(index), data
        shown = np.atleast_2d(np.abs(data) if data.dtype.kind == "c" else data)
        if shown.dtype.kind == "b" or shown.dtype.itemsize == 2 and shown.dtype.kind == "f":
            shown = shown.astype(np.float32)
        self.image.set_data(shown)
        self.image.set_extent((columns.start - 0.5, columns.start + columns.step * shown.shape[1] - 0.5,
                               rows.start + rows.step * shown.shape[0] - 0.5, rows.start - 0.5))
        finite = shown[np.isfinite(shown)]
        if self._range is None and finite.size:
            # Colours mean the same at every zoom.
            self._range = float(finite.min()), float(finite.max())
            if self.image.norm.vmin is None:
                self.image.set_clim(*self._range)


def _dimensions(array: "Array", index: Any) -> Tuple[List[Any], List[int]]:
    """A slice or an integer for each dimension, and which dimensions have slices."""
    shape = array.shape
    if index is None:
        index = tuple(n // 2 for n in shape[:-2]) + (slice(None),) * min(2, len(shape))
    fixed: List[Any] = []
    shown: List[int] = []
    for d, k in enumerate(keys_of(index, shape, f"array '{array.path}'")):
        if isinstance(k, slice):
            first, last, step = k.indices(shape[d])
            if step != 1 or last <= first:
                raise IndexError(f"dimension {d}: {k} is no range of step 1 that has elements")
            fixed.append(slice(first, last))
            shown.append(d)
        else:
            fixed.append(k)
    if len(shown) not in (1, 2):
        raise IndexError(f"a picture has one or two dimensions, not {len(shown)}: give an integer for each of the others")
    return fixed, shown


def view(array: "Array", index: Any = None, *, pixels: int = 512, axes: Any = None, **options: Any) -> SliceViewer:
    """A picture of an array of any size, in a notebook or a window of matplotlib.

    ::

        v = oocarray.view(a)                  # the last two dimensions, sliders for the others
        oocarray.view(a, np.s_[5, :, 1000:2000])

    Every k-th element is shown, at most `pixels` in a row and a column.  Zooming reads what is shown then, up to each
    single element.  In row-major files that is one strided request, which reads no others and takes no room in the
    budget; what is modified is written back before.

    Parameters
    ----------
    array : Array
    index : optional
        Integers and slices of step 1 as for NumPy, with one or two slices.
    pixels : int
        Elements in a row and a column at most.
    axes : matplotlib.axes.Axes
        Where to draw; a new figure without it.
    **options
        For matplotlib's image, such as ``cmap``, ``norm`` and ``interpolation``.
    """
    return SliceViewer(array, index, pixels, axes, **options)
