"""Compressed bytes unpacked, up to a limit: a small file may hold more than any memory.

>>> import gzip
>>> unpacked(gzip.compress(b"spans"), 100)
(b'spans', True)
>>> unpacked(gzip.compress(b"spans")[:-9], 100)  # cut off: what came before it, and that it is torn
(b'spans', False)
"""

from __future__ import annotations

import bz2
import zlib

GZIP, ZSTD, BZIP2 = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh"
TORN = "its compressed file is torn: what follows cannot be read"
_STEP = 1 << 20


class TooLargeError(ValueError):
    """More bytes come out than may."""


def unpacked(data: bytes, most: int) -> tuple[bytes, bool]:
    """Unpack gzip, zstd or bzip2, told by their first bytes, and whether all of it is there.

    Raises :class:`TooLargeError` where it would be more than ``most`` bytes. What is compressed by
    none of them stays as it is.
    """
    if data.startswith(GZIP):
        return gunzipped(data, most)
    if data.startswith(BZIP2):
        return _bunzipped(data, most)
    if data.startswith(ZSTD):
        return _unzstd(data, most)
    if len(data) > most:
        raise TooLargeError
    return data, True


def gunzipped(data: bytes, most: int) -> tuple[bytes, bool]:
    """Unpack gzip, also of several members, as far as it goes."""
    parts: list[bytes] = []
    size = 0
    while data:
        unpacker = zlib.decompressobj(wbits=31)
        while not unpacker.eof:
            try:
                part = unpacker.decompress(data, _STEP)
            except zlib.error:
                return b"".join(parts), False
            size += len(part)
            if size > most:
                raise TooLargeError
            parts.append(part)
            data = unpacker.unconsumed_tail
            if not part and not data and not unpacker.eof:
                return b"".join(parts), False
        data = unpacker.unused_data.lstrip(b"\0")  # zeros may fill up a block
    return b"".join(parts), True


def _bunzipped(data: bytes, most: int) -> tuple[bytes, bool]:
    unpacker = bz2.BZ2Decompressor()
    try:
        whole = unpacker.decompress(data, most + 1)
    except OSError:
        return b"", False
    if len(whole) > most:
        raise TooLargeError
    return whole, unpacker.eof


def _unzstd(data: bytes, most: int) -> tuple[bytes, bool]:
    import pyarrow as pa

    parts: list[bytes] = []
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            while part := stream.read(_STEP):
                parts.append(part)
                if sum(map(len, parts)) > most:
                    raise TooLargeError
    except (OSError, pa.ArrowException):
        return b"".join(parts), False
    return b"".join(parts), True
