"""Compiles the models before the jobs start, where that has not been done."""

from __future__ import annotations

import importlib

import structlog

from models import kernels

log = structlog.get_logger()

MODELS = "models.compiled"
"""The module that compiles the models when it is imported; jobs that judge nothing do not import it."""


def compile_once() -> None:
    """Compiles the models, and says so, as it takes a while; does nothing where their machine code is there.

    Otherwise each of Spark's Python daemons would do so at its start, and the jobs would wait for it without a word.
    `make setup` and the image have done it before.
    """
    if not kernels.is_ready():
        log.info("compiling the models, once: this takes about a minute")
        importlib.import_module(MODELS)
