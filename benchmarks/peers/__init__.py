"""The programs that are measured, one folder a language; their contract is in ../README.md."""
