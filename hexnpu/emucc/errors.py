"""What the translation refuses: an instruction, an operand, a place. The text becomes a compiler's error line."""

from __future__ import annotations


class AsmError(Exception):
    """An asm statement that cannot be translated; the text says which part of it."""
