"""The experiments whose results the lectures quote: each a script that makes its runs again, and what it recorded."""
