"""Every client's speed, side by side: `python benchmarks/run.py`, explained in README.md."""
