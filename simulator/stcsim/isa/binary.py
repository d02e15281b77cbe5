"""A program as bytes: a header, the instruction words, the data directives.

=========  ========================================================
bytes      what
=========  ========================================================
0..7       magic, ``STCSIM`` 0x0D 0x0A
8..11      version of this format
12..15     number of instructions
16..19     bytes of the data section
20..23     CRC-32 of all that follows the header
24..       instructions, 16 bytes each, little-endian
then       data directives, a line each, UTF-8
=========  ========================================================

Numbers are little-endian.  Anything else is refused with one sentence: a file must have exactly the
length that its header says.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from stcsim.errors import IsaError, Problem, must
from stcsim.isa.directive import parse_directive
from stcsim.isa.encoding import WORD_BYTES, decode, encode
from stcsim.isa.program import NO_TEXT, Program
from stcsim.isa.table import Isa

MAGIC = b"STCSIM\r\n"
VERSION = 1
_HEADER = struct.Struct("<8sIIII")


def to_bytes(program: Program) -> bytes:
    """Return a program as bytes.

    Parameters
    ----------
    program : Program

    Returns
    -------
    content : bytes
    """
    words = b"".join(encode(i).to_bytes(WORD_BYTES, "little") for i in program.instructions)
    data = "".join(f"{directive}\n" for directive in program.data).encode()
    crc = zlib.crc32(words + data)
    return _HEADER.pack(MAGIC, VERSION, len(program.instructions), len(data), crc) + words + data


def from_bytes(content: bytes, *, file: str | None = None, isa: Isa | None = None) -> Program:
    """Return the program of a binary; the inverse of `to_bytes`.

    Parameters
    ----------
    content : bytes
    file : str, optional
        Its name, for messages.
    isa : Isa, optional
        The shipped one by default.

    Returns
    -------
    program : Program

    Raises
    ------
    IsaError
        If the content is not a whole binary of this version.
    """
    try:
        return _program(content, isa)
    except IsaError as error:
        (first, *_) = error.problems
        raise IsaError(Problem(first.message, file, path=first.path)) from None


def read(path: Path, *, isa: Isa | None = None) -> Program:
    """Return the program of a binary file; see `from_bytes`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise IsaError(Problem(must("must be a readable file", error.strerror), str(path))) from None
    return from_bytes(content, file=str(path), isa=isa)


def is_binary(path: Path) -> bool:
    """Tell whether a file is a binary, be it a damaged one, and no assembly text."""
    content = path.read_bytes()
    return content.startswith(MAGIC) or NO_TEXT.search(content) is not None


def _program(content: bytes, isa: Isa | None) -> Program:
    if content[: len(MAGIC)] != MAGIC:
        raise IsaError(must("must be a program that stcsim assembled (begin with STCSIM)", repr(content[:8])))
    if len(content) < _HEADER.size:
        raise IsaError(must(f"must have a header of {_HEADER.size} bytes", len(content)))
    _, version, n_instructions, n_data, crc = _HEADER.unpack_from(content)
    if version != VERSION:
        raise IsaError(must(f"must be of format version {VERSION}", version))
    body = content[_HEADER.size :]
    n_words = n_instructions * WORD_BYTES
    if len(body) != n_words + n_data:
        raise IsaError(must(f"must have {_HEADER.size + n_words + n_data} bytes", len(content)))
    if zlib.crc32(body) != crc:
        raise IsaError(must(f"must have checksum {crc:08x}", f"{zlib.crc32(body):08x}"))
    instructions = []
    for i in range(n_instructions):
        word = int.from_bytes(body[i * WORD_BYTES : (i + 1) * WORD_BYTES], "little")
        try:
            instructions.append(decode(word, isa))
        except IsaError as error:
            raise IsaError(Problem(error.problems[0].message, path=f"instruction {i}")) from None
    try:
        lines = body[n_words:].decode().splitlines()
    except UnicodeDecodeError:
        raise IsaError(must("data section must be text", "bytes that are no UTF-8")) from None
    return Program(tuple(instructions), tuple(parse_directive(line) for line in lines))
