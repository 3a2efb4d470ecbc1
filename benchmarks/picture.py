"""Pictures of benchmarks: panels of one look, saved as PNG files under `out/benchmarks`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from matplotlib.figure import Figure

__all__ = ["Picture"]

FOLDER = Path("out/benchmarks")
DPI = 110


class Picture:
    """Figure of one panel or of a grid of panels.

    Args:
        title: text above all panels.
        size: width and height, inches.
        rows: number of rows of panels.
        columns: number of columns of panels.
        shared: axes that panels share, as `Figure.subplots` has them.

    Attributes:
        grid: panels, shape (rows, columns).
    """

    def __init__(
        self,
        title: str,
        size: tuple[float, float],
        *,
        rows: int = 1,
        columns: int = 1,
        **shared: Any,
    ) -> None:
        self._figure = Figure(figsize=size, dpi=DPI, layout="constrained")
        self._figure.suptitle(title, fontsize=11)
        self.grid: Any = self._figure.subplots(rows, columns, squeeze=False, **shared)

    @property
    def panels(self) -> list[Any]:
        """Panels, row by row."""
        return list(self.grid.ravel())

    def save(
        self, name: str, *, legend: Literal["each", "first", "below"] = "each", columns: int = 1
    ) -> Path:
        """Give all panels titles, grids and legends of one look; save, and return the path.

        Args:
            name: name of the file, without its ending.
            legend: place of the legend: in each panel with labels, the first, or below them all.
            columns: columns of a legend.
        """
        for panel in self.panels:
            title = panel.get_title()
            panel.set_title("")
            panel.set_title(title, fontsize=10, loc="left")
            panel.grid(alpha=0.25)
        first = self.panels[0]
        if legend == "below":
            handles = first.get_legend_handles_labels()
            self._figure.legend(*handles, fontsize=8, loc="outside lower center", ncols=columns)
        else:
            for panel in self.panels if legend == "each" else [first]:
                if panel.get_legend_handles_labels()[1]:
                    panel.legend(fontsize=8, ncols=columns)
        path = FOLDER / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._figure.savefig(path)
        return path
