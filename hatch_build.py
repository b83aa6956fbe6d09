"""Build the machine code of the kernels into wheels, so that nothing is compiled where they run."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MachineCodeHook(BuildHookInterface):
    """Add the library of all kernels to a wheel, which is then one for this kind of processor.

    An editable install has none: what is edited is compiled when it is called. With TIDINGS_PURE=1
    in the environment, or without a C compiler, the wheel is one for all processors, and asks for
    the extra 'compile' where it runs.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the library, a matter of two minutes, or take what was built before."""
        if version == "editable" or os.environ.get("TIDINGS_PURE"):
            return
        sys.path.insert(0, str(Path(self.root) / "src"))
        from tidings.kernels.building import build_library, can_build

        if not can_build():
            self.app.display_warning(
                "No C compiler was found: this wheel needs 'tidings[compile]' where it runs."
            )
            return
        library = build_library()
        build_data["force_include"][str(library)] = f"tidings/kernels/{library.name}"
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
