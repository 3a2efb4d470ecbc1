"""Files that are no text, told by their first bytes, whatever their name."""

from __future__ import annotations

from slackwater.ingest.record_walk import BadText

__all__ = ["refuse_packed"]

_KINDS = (  # (first bytes, the kind, what to do)
    (b"\x1f\x8b\x08", "packed by gzip", "let its name end in .gz, or unpack it, gunzip"),
    (b"BZh91AY&SY", "packed by bzip2", "let its name end in .bz2, or unpack it, bunzip2"),
    (b"\x28\xb5\x2f\xfd", "packed by zstd", "let its name end in .zst, or unpack it, unzstd"),
    (b"\x04\x22\x4d\x18", "packed by lz4", "let its name end in .lz4, or unpack it, unlz4"),
    (b"\xfd7zXZ\0", "packed by xz", "unpack it, unxz; .gz, .bz2, .zst and .lz4 are unpacked"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it, 7z x"),
    (b"PK\x03\x04", "a zip archive or a workbook, .xlsx", "unpack it, or save its sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "a workbook, .xls", "save its sheet as CSV"),
    (b"PAR1", "a parquet file", "read it by sw.parquet(…)"),
    (b"ARROW1\0", "an Arrow file", "read it by sw.table(pyarrow.feather.read_table(…))"),
    (b"SQLite format 3\0", "a database of SQLite", "read a table of it into sw.table(…)"),
)


def refuse_packed(start: bytes) -> None:
    """Check that a file does not begin as one that is packed, or no text.

    Args:
        start: its first bytes, unpacked by its suffix.

    Raises:
        BadText: it does; says what to do.
    """
    for first, kind, way_out in _KINDS:
        if start.startswith(first):
            raise BadText(f"the file is {kind}, and no text", line=None, way_out=way_out)
