"""Where this engine lies: a pulled repository always runs with the engine it came with."""

from __future__ import annotations

from pathlib import Path

ENGINE = Path(__file__).resolve().parents[1]
AUTOMATION = ENGINE.parent
CHECKOUT = AUTOMATION.parent
