"""What pyproject.toml cannot say: the native modules, the bundled driver, and that nothing stale is shipped."""

import os
import platform
import runpy
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build import build
from setuptools_rust import Binding, RustExtension, Strip


class BuildFromNothing(build):
    """A module or a driver that an earlier build left behind would otherwise be packed again."""

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


def bundled_driver() -> list[RustExtension]:
    """The driver's binary, or nothing where there is no fitting Rust: connect() then names the alternatives."""
    if subprocess.run(["scripts/check_rust"], check=False).returncode != 0:
        return []
    if platform.machine() == "aarch64":
        # .cargo/config.toml names the baseline of x86-64; a variable that is set wins over it.
        os.environ.setdefault("RUSTERON_C_MARCH", "armv8-a")
    return [
        RustExtension(
            {"aeron-async-driver": "aeron_async._bin.aeron-async-driver"},
            path="driver/aeron-async-driver/Cargo.toml",
            binding=Binding.Exec,
            debug=False,
            strip=Strip.All,
            cargo_manifest_args=["--locked"],
        )
    ]


setup(
    cffi_modules=["native/build_native.py:ffibuilder"],
    ext_modules=runpy.run_path("native/build_native.py")["speedups"],
    rust_extensions=bundled_driver(),
    cmdclass={"build": BuildFromNothing},
    # _speedups is for the CPython that builds it; the others do without.
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
