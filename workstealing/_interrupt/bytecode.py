"""What the bytecode of a function tells about each place in it.

Which handlers are around an instruction, and whether it is inside of one; whether it
enters or leaves a `with`; where the interpreter looks for exceptions that other threads
have sent; what may come next. The code is only read, never run.

From 3.11 on, a table says which instructions an `except`, `finally` or `with` protects.
In 3.10 instructions set blocks up and take them down, so they are followed.
"""

from __future__ import annotations

import dis
from bisect import bisect_right
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

__all__ = ("FunctionBytecode", "bytecode_of")

_ENTERS = frozenset(
    {"BEFORE_ASYNC_WITH", "BEFORE_WITH", "SETUP_ASYNC_WITH", "SETUP_WITH"}
)
_CALLS = frozenset(
    {
        "CALL",
        "CALL_FUNCTION",
        "CALL_FUNCTION_EX",
        "CALL_FUNCTION_KW",
        "CALL_KW",
        "CALL_METHOD",
        "PRECALL",
    }
)
_CHECKS = _CALLS | {"JUMP_ABSOLUTE", "JUMP_BACKWARD", "RESUME"}
_RETURNS = frozenset({"RETURN_CONST", "RETURN_VALUE", "YIELD_VALUE"})
_RERAISES = frozenset({"RAISE_VARARGS", "RERAISE"})
_ENDS = (
    _RETURNS
    | _RERAISES
    | {"JUMP_ABSOLUTE", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_FORWARD"}
)
_JUMPS = frozenset({*dis.hasjrel, *dis.hasjabs})
_SETUPS = frozenset({"SETUP_ASYNC_WITH", "SETUP_FINALLY", "SETUP_WITH"})
_NAMES = frozenset({*dis.hasname, *dis.haslocal, *dis.hasfree})
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_NO_LINE = 0
_MOST_KNOWN = 2048
_known: dict[int, tuple[CodeType, FunctionBytecode]] = {}


def bytecode_of(code: CodeType) -> FunctionBytecode:
    """Return what is known about the code, and keep it: it is asked for often.

    By identity: codes that are equal may still be many to compare.
    """
    known = _known.get(id(code))
    if known is None or known[0] is not code:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        known = _known[id(code)] = (code, FunctionBytecode(code))
    return known[1]


class FunctionBytecode:
    """What the instructions of a function tell about where it is.

    A place in it is the number of an instruction; `index()` finds it.
    """

    def __init__(self, code: CodeType) -> None:
        self._instructions = list(_instructions_of(code))
        self._offsets = [instruction.offset for instruction in self._instructions]
        if hasattr(code, "co_exceptiontable"):
            self._protections = self._from_table(code.co_exceptiontable)
        else:
            self._protections = self._from_blocks()
        self._cleaning_lines = {
            instruction.line
            for instruction, protection in zip(
                self._instructions, self._protections, strict=True
            )
            if protection.is_cleaning and instruction.line != _NO_LINE
        }
        self._with_lines = {
            instruction.line
            for instruction in self._instructions
            if instruction.name in _ENTERS
        }
        self._words: dict[int, frozenset[str]] = {}

    def index(self, lasti: int) -> int:
        """Return which instruction that is; the first one if none has begun."""
        return max(bisect_right(self._offsets, lasti) - 1, 0)

    def is_entering(self, at: int) -> bool:
        """Whether it calls an `__enter__`."""
        return self._instructions[at].name in _ENTERS

    def is_exiting(self, at: int) -> bool:
        """Whether it calls an `__exit__`, after an exception or without one."""
        instruction = self._instructions[at]
        if instruction.name == "WITH_EXCEPT_START":
            return True
        if instruction.name not in _CALLS:
            return False
        before = at - 2 if self._instructions[at - 1].name == "PRECALL" else at - 1
        return before >= 2 and all(
            (name == "LOAD_CONST" and value is None) or name in ("DUP_TOP", "COPY")
            for _, _, name, value, _ in self._instructions[before - 2 : before + 1]
        )

    def is_checked(self, at: int) -> bool:
        """Whether the interpreter looks for exceptions right after it."""
        instruction = self._instructions[at]
        return (
            at == 0
            or instruction.name in _CHECKS
            or instruction.name.startswith("POP_JUMP_BACKWARD")
        )

    def is_calling(self, at: int) -> bool:
        """Whether it is a call, which may fail."""
        return self._instructions[at].name in _CALLS

    def is_returning(self, at: int) -> bool:
        """Whether it leaves the function, or suspends it, without an exception."""
        return self._instructions[at].name in _RETURNS

    def is_raising(self, at: int) -> bool:
        """Whether all that it does is to raise."""
        return self._instructions[at].name in _RERAISES

    def is_cleaning(self, at: int) -> bool:
        """Whether it is in an `except` or `finally`, in whichever copy of it."""
        if self._protections[at].is_cleaning:
            return True
        line = self._instructions[at].line
        return line in self._cleaning_lines and line not in self._with_lines

    def is_before_try(self, at: int) -> bool:
        """Whether a `try` or `with` begins before the next place to raise."""
        inside = len(self._protections[at].handlers)
        for place in range(at + 1, len(self._instructions)):
            if len(self._protections[place].handlers) > inside:
                return not self._protections[place].is_cleaning
            if self._instructions[place].name in _ENDS or self.is_checked(place):
                break
        return False

    def handlers(self, at: int) -> tuple[int, ...]:
        """Return where exceptions of this instruction are handled, inner first."""
        return self._protections[at].handlers

    def successors(self, at: int) -> list[int]:
        """Return what may come after it, exceptions apart."""
        instruction, found = self._instructions[at], []
        if instruction.name not in _ENDS and at + 1 < len(self._instructions):
            found.append(at + 1)
        if instruction.code in _JUMPS and instruction.name not in _SETUPS:
            found.append(self.index(instruction.value))
        return found

    def words(self, at: int) -> frozenset[str]:
        """Return the names in the line of this instruction."""
        line = self._instructions[at].line
        if line not in self._words:
            self._words[line] = frozenset(
                instruction.value
                for instruction in self._instructions
                if instruction.line == line
                and instruction.code in _NAMES
                and isinstance(instruction.value, str)
            )
        return self._words[line]

    def globals_on_line(self, at: int) -> set[str]:
        """Return the global names in the line of this instruction."""
        line = self._instructions[at].line
        return {
            str(instruction.value)
            for instruction in self._instructions
            if instruction.line == line and instruction.name in _GLOBALS
        }

    def entries_on_line(self, at: int) -> list[int]:
        """Return where a `with` is entered in the line of this instruction."""
        line = self._instructions[at].line
        return [
            place
            for place, instruction in enumerate(self._instructions)
            if instruction.line == line and self.is_entering(place)
        ]

    def entered_names(self, at: int) -> list[str]:
        """Return what a `with` enters here: a variable and then attributes of it.

        Nothing if it is anything else, such as what a call returns.
        """
        names: list[str] = []
        for instruction in reversed(self._instructions[:at]):
            names.insert(0, str(instruction.value))
            if instruction.name != "LOAD_ATTR":
                is_variable = instruction.name.startswith("LOAD_")
                is_named = isinstance(instruction.value, str)
                return names if is_variable and is_named else []
        return []

    def _from_table(self, table: bytes) -> list[_Protection]:
        """Read the exception table of 3.11 and later; it tells the innermost only."""
        entries = list(_entries_of(table))
        starts = [entry.start for entry in entries]

        def entry_at(offset: int) -> _TableEntry | None:
            place = bisect_right(starts, offset) - 1
            if place >= 0 and offset < entries[place].end:
                return entries[place]
            return None

        def protection(offset: int) -> _Protection:
            handlers: list[int] = []
            is_cleaning, depth = False, None
            entry = entry_at(offset)
            while entry is not None:
                first = self.index(entry.target)
                name = self._instructions[first].name
                if name == "PUSH_EXC_INFO":
                    handlers.append(first)
                    depth = entry.depth
                elif name != "CALL_INTRINSIC_1" and name != "SWAP":
                    # What ends a handler: that of the `try` we are in, or around us.
                    is_cleaning = is_cleaning or depth is None or entry.depth <= depth
                following = entry_at(entry.target)
                if following is entry:
                    break
                entry = following
            return _Protection(tuple(handlers), is_cleaning)

        return [protection(offset) for offset in self._offsets]

    def _from_blocks(self) -> list[_Protection]:
        """Follow the blocks that 3.10 sets up and takes down."""
        found: dict[int, tuple[int, ...]] = {}
        todo: list[tuple[int, tuple[int, ...]]] = [(0, ())]
        while todo:
            at, blocks = todo.pop()
            if at in found or at >= len(self._instructions):
                continue
            found[at] = blocks
            instruction = self._instructions[at]
            if instruction.name in _SETUPS:
                target = self.index(instruction.value)
                todo.append((target, (-1, *blocks)))
                blocks = (target, *blocks)
            elif instruction.name in ("POP_BLOCK", "POP_EXCEPT"):
                blocks = blocks[1:]
            todo += [(following, blocks) for following in self.successors(at)]
        every = (found.get(at, ()) for at in range(len(self._instructions)))
        return [
            _Protection(tuple(block for block in blocks if block >= 0), -1 in blocks)
            for blocks in every
        ]


class _Instruction(NamedTuple):
    """One instruction."""

    offset: int
    code: int
    name: str
    value: Any
    line: int


class _Protection(NamedTuple):
    """The handlers around an instruction, inner first, and whether it is in one."""

    handlers: tuple[int, ...] = ()
    is_cleaning: bool = False


class _TableEntry(NamedTuple):
    start: int
    end: int
    target: int
    depth: int


def _instructions_of(code: CodeType) -> Iterator[_Instruction]:
    lines = {
        offset: line or _NO_LINE
        for start, end, line in code.co_lines()
        for offset in range(start, end, 2)
    }
    for found in dis.get_instructions(code):
        if found.opname not in ("CACHE", "EXTENDED_ARG", "NOP"):
            line = lines.get(found.offset, _NO_LINE)
            yield _Instruction(
                found.offset, found.opcode, found.opname, found.argval, line
            )


def _entries_of(table: bytes) -> Iterator[_TableEntry]:
    """Read an exception table: numbers of six bits to a byte, the high ones first."""
    numbers: list[int] = []
    value = 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:
            numbers.append(value)
            value = 0
    for place in range(0, len(numbers) - 3, 4):
        start, length, target, depth = numbers[place : place + 4]
        yield _TableEntry(start * 2, (start + length) * 2, target * 2, depth >> 1)
