"""Writes the files; see the package."""

from tools.make_robots import FOLDER, files

for name, text in files().items():
    (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"{name}: {len(text)} characters")
