"""Only the native part of the build; everything else is in pyproject.toml.

`millstream.records._walker` is compiled from its own Python source. Where that cannot be done (no Cython, no C
compiler, MILLSTREAM_PURE=1) the install goes on without: the same source then runs as plain Python, slower.
"""

from __future__ import annotations

import logging
import os
import sys

from setuptools import Extension, setup

WALKER = "src/millstream/records/_walker.py"
log = logging.getLogger("millstream.build")
FLAGS = [] if sys.platform == "win32" else ["-O3", "-fwrapv"]


def native_modules() -> list[Extension]:
    """The extensions to build; each is optional, so that a failing compiler is a warning and not the end."""
    if os.environ.get("MILLSTREAM_PURE"):
        log.warning("MILLSTREAM_PURE is set, the record walker stays plain Python")
        return []
    try:
        from Cython.Build import cythonize  # noqa: PLC0415  an install without Cython is what this guards against
    except ImportError:
        log.warning("no Cython, the record walker stays plain Python")
        return []
    walker = Extension("millstream.records._walker", [WALKER], extra_compile_args=FLAGS, optional=True)
    modules: list[Extension] = cythonize([walker], build_dir="build/cython", quiet=True)
    return modules


setup(ext_modules=native_modules())
