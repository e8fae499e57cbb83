"""What every page has: its files, its template, and the policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Final

import jinja2

__all__ = ["policy", "template", "text_of"]

HERE: Final = Path(__file__).parent


def template(name: str) -> jinja2.Template:
    """A template beside this module; what is put into it is text, unless it is marked otherwise."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )  # fmt: skip
    return environment.get_template(name)


def text_of(name: str) -> str:
    """A file beside this module."""
    return (HERE / name).read_text(encoding="utf-8")


def policy(style: str, script: str = "", *, forms: str = "'none'") -> str:
    """The Content-Security-Policy of a page: this style, this script, and nothing else.

    Args:
        style: the whole text between its tags.
        script: the same; empty for a page without one.
        forms: where its forms may lead.
    """
    scripts = _hash(script) if script else "'none'"
    return (
        f"default-src 'none'; script-src {scripts}; style-src {_hash(style)}; img-src data:;"
        f" base-uri 'none'; form-action {forms}"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
