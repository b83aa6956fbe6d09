"""Building machine code of kernels ahead: one library that runs on any processor of its kind.

Numba compiles every part for a plain processor of this kind, in a process of its own, and the
system's C compiler links them into a shared library. It needs neither numba nor Python: only what
the C library has.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from tidings.errors import EngineError
from tidings.kernels.compile import PARTS, Part
from tidings.kernels.library import NAMES, kept_library

_PACKAGE = Path(__file__).parents[1]
_PLAIN_PROCESSOR = {
    "TIDINGS_KERNELS": "compiled",
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "NUMBA_NUM_THREADS": "1",
}
_PROGRAM = (
    "from pathlib import Path; from tidings.kernels import building; "
    "building.link(building.every_part(), Path(sys.argv[1]))"
)
# What Python calls: numba's own function, without its way to raise errors, which no part does.
_ENTRY = """
declare i32 @"{native}"(ptr, ptr, i64, i64, i64)
declare void @llvm.trap()
define i64 @"{name}"(i64 %world, i64 %one, i64 %other) {{
  %result = alloca i64
  %error = alloca ptr
  store i64 0, ptr %result
  %status = call i32 @"{native}"(ptr %result, ptr %error, i64 %world, i64 %one, i64 %other)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %done, label %broken
broken:
  call void @llvm.trap()
  unreachable
done:
  %value = load i64, ptr %result
  ret i64 %value
}}
"""


def can_build() -> bool:
    """Whether there is a C compiler, to link with."""
    return compiler() is not None


def compiler() -> str | None:
    """Find the system's C compiler."""
    named = os.environ.get("CC", "").split()
    return shutil.which(named[0] if named else "cc") or shutil.which("gcc")


def build_library() -> Path:
    """Build the library of all kernels for this user, unless there is one, and give its file."""
    file = kept_library()
    if not file.is_file():
        # Of these sources, also where an installer hides what else is on Python's path.
        program = f"import sys; sys.path.insert(0, {str(_PACKAGE.parent)!r}); {_PROGRAM}"
        command = [sys.executable, "-c", program, str(file)]
        env = os.environ | _PLAIN_PROCESSOR
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
            raise EngineError(f"the kernels could not be built ahead: {said}")
    return file


def every_part() -> list[Part]:
    """Import all kernels; their parts."""
    for file in sorted((*_PACKAGE.glob("*/kernel*.py"), _PACKAGE / "kernels" / "paths.py")):
        import_module(".".join(("tidings", *file.relative_to(_PACKAGE).with_suffix("").parts)))
    return list(PARTS.values())


def link(parts: Iterable[Part], file: Path) -> None:
    """Compile parts for the processor that numba was told of, and link them into a library."""
    linker = compiler()
    if linker is None:
        raise EngineError("there is no C compiler: install one, or name it by CC")
    with TemporaryDirectory(dir=file.parent, prefix=".building-") as folder:
        objects, library = Path(folder) / "kernels.o", Path(folder) / file.name
        objects.write_bytes(_object_code(list(parts)))
        command = [linker, "-shared", "-o", str(library), str(objects), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EngineError(f"{linker} could not link the kernels: {done.stderr.strip()}")
        os.replace(library, file)


def _object_code(parts: list[Part]) -> bytes:
    """All parts as one object that can be loaded anywhere."""
    import llvmlite.binding as llvm

    listed = "".join(f"{part.name}\\0A" for part in parts)
    size = sum(len(part.name) + 1 for part in parts) + 1
    whole = llvm.parse_assembly(f'@{NAMES} = constant [{size} x i8] c"{listed}\\00"')
    for part in parts:
        compiled = part.compile(is_kept=False)
        text = compiled.inspect_llvm()
        native = compiled.native_name.removeprefix("cfunc.")
        # Numba's own entry can raise errors in Python, by functions that only numba has.
        text = re.sub(r"^define [^\n]*@\"?cfunc\.[^\n]*\{\n.*?^\}\n", "", text, flags=re.M | re.S)
        whole.link_in(llvm.parse_assembly(text))
        whole.link_in(llvm.parse_assembly(_ENTRY.format(name=part.name, native=native)))
    # Only now: numba has made LLVM know this processor by compiling something for it.
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu="generic", features="", opt=3, reloc="pic", codemodel="default"
    )
    code: bytes = machine.emit_object(whole)
    return code
