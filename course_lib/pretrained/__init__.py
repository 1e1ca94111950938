"""The weights that come with the library, a folder each; a README beside them says how they were made."""

from pathlib import Path

SHIPPED = Path(__file__).parent
