"""pip install . : builds libnccl.so.2 with scripts/libnccl (Go and gcc), or takes the file that RINGO_LIBRARY names."""

import os
import pathlib
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py

here = pathlib.Path(__file__).resolve().parent


class Build(build_py):
    def run(self):
        super().run()
        out = pathlib.Path(self.build_lib).resolve() / "torch_ringo" / "libnccl.so.2"
        given = os.environ.get("RINGO_LIBRARY")
        if given:
            shutil.copyfile(given, out)
        else:
            subprocess.check_call(["bash", str(here.parents[1] / "scripts" / "libnccl"), str(out)])


setup(
    name="torch_ringo", version="0.2.0", packages=["torch_ringo"], py_modules=["ringo_norm"], python_requires=">=3.8", cmdclass={"build_py": Build},
    description="torch.distributed on host memory by Ringo", package_data={"torch_ringo": ["libnccl.so.2"]},
    has_ext_modules=lambda: True,
)
