"""The code blocks of README.md and docs/*.md."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language):
    """The blocks of a language, {"page:number": text}."""
    found = {}
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        own = [text for name, text in FENCE.findall(page.read_text()) if name == language]
        found |= {f"{page.relative_to(ROOT)}:{number}": text for number, text in enumerate(own)}
    return found
