"""Only the native part of the build; everything else is in pyproject.toml.

The modules of NATIVE are compiled from their own Python source. Where that cannot be done (no Cython, no C compiler,
MILLSTREAM_PURE=1) the install goes on without: the same source then runs as plain Python, slower.
"""

from __future__ import annotations

import logging
import os
import sys

from setuptools import Extension, setup

NATIVE = tuple(f"millstream.records.{name}" for name in ("_walker", "_columns", "_scatter"))
log = logging.getLogger("millstream.build")
FLAGS = [] if sys.platform == "win32" else ["-O3", "-fwrapv", "-g0"]
# A varint or a few bytes are read by functions that cost less than a call, to which Cython hands whole descriptions of
# buffers. GCC puts them in place only if it may let a function grow; batches are then walked in half the time.
if sys.platform == "linux":
    FLAGS += [
        f"--param={limit}"
        for limit in ("max-inline-insns-auto=400", "inline-unit-growth=500", "large-stack-frame-growth=4000")
    ]


def native_modules() -> list[Extension]:
    """The extensions to build; each is optional, so that a failing compiler is a warning and not the end."""
    if os.environ.get("MILLSTREAM_PURE"):
        log.warning("MILLSTREAM_PURE is set, the record walkers stay plain Python")
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        log.warning("no Cython, the record walkers stay plain Python")
        return []
    sources = [Extension(name, [f"src/{name.replace('.', '/')}.py"], extra_compile_args=FLAGS) for name in NATIVE]
    # They call C functions of each other, and find their declarations below src.
    modules: list[Extension] = cythonize(sources, build_dir="build/cython", include_path=["src"], quiet=True)
    for module in modules:
        module.optional = True  # cythonize makes extensions of its own, and forgets this
    return modules


setup(ext_modules=native_modules())
