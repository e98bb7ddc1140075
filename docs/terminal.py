#!/usr/bin/env python3
"""Records a real `tidegate demo` in tmux and draws it as docs/terminal.svg.

    cargo build --release && python3 docs/terminal.py

Needs tmux and Python, nothing else. The picture plays in the time the run took; where pictures do not move
(print, reduced motion) it shows the last screen.
"""

import html
import os
import pathlib
import re
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS, ROWS = 100, 40
EVERY = 0.25  # seconds between two looks at the screen
HOLD = 8.0  # seconds for the last screen
SIZE, ADVANCE, LINE, MARGIN = 14, 8.43, 20, 18
BACKGROUND, INK = "#10161d", "#d3dae3"
COLOURS = {31: "#ff7b72", 32: "#56d364", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#39c5cf"}


def record():
    """Screens of the run with the seconds since its start."""
    binary = ROOT / "target/release/tidegate"
    session = f"tidegate-picture-{os.getpid()}"
    tmux = lambda *words: subprocess.run(["tmux", *words], check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "bin").mkdir()
        (pathlib.Path(folder) / "bin/tidegate").symlink_to(binary)
        shell = f"cd {folder} && exec env PATH={folder}/bin:$PATH PS1='$ ' bash --norc --noprofile"
        tmux("new-session", "-d", "-s", session, "-x", str(COLUMNS), "-y", str(ROWS), shell)
        try:
            time.sleep(0.5)
            tmux("send-keys", "-t", session, "tidegate demo", "Enter")
            began, screens = time.monotonic(), []
            while True:
                screen = tmux("capture-pane", "-t", session, "-p", "-e").rstrip().split("\n")
                screens.append((time.monotonic() - began, screen))
                # A second prompt: the run is over.
                if sum(line.startswith("$") for line in screen) > 1:
                    break
                if time.monotonic() - began > 300:
                    raise SystemExit("the demo did not end within five minutes")
                time.sleep(EVERY)
        finally:
            tmux("kill-session", "-t", session)
    at, last = screens[-1]
    while last and last[-1].strip() in ("$", ""):
        last = last[:-1]
    screens[-1] = (at, last)
    return screens


def runs(line):
    """Pieces of equal colour: (column, text, style)."""
    column, style = 0, {}
    for escape, text in re.findall(r"\x1b\[([\d;]*)m|([^\x1b]+)", line):
        if text:
            yield column, text, dict(style)
            column += len(text)
            continue
        for code in [int(code or 0) for code in escape.split(";")]:
            if code == 0:
                style = {}
            elif code == 1:
                style["font-weight"] = "bold"
            elif code == 2:
                style["opacity"] = "0.45"
            elif code == 39:
                style.pop("fill", None)
            elif code in COLOURS:
                style["fill"] = COLOURS[code]


def draw_line(row, line):
    y = MARGIN + row * LINE + SIZE
    for column, text, style in runs(line):
        extra = "".join(f' {name}="{value}"' for name, value in style.items())
        # Words that stand apart are placed one by one: viewers do not agree on whether they keep several blanks.
        for words in re.finditer(r"\S+(?: \S+)*", text):
            x, width = MARGIN + (column + words.start()) * ADVANCE, len(words[0]) * ADVANCE
            yield f'<text x="{x:.1f}" y="{y}" textLength="{width:.1f}"{extra}>{html.escape(words[0])}</text>'


def draw(screens):
    end = screens[-1][0] + HOLD
    height = max(len(screen) for _, screen in screens)
    shown, rules = [], {}
    for row in range(height):
        lines = [screen[row] if row < len(screen) else "" for _, screen in screens]
        first = 0
        for after in range(1, len(lines) + 1):
            if after < len(lines) and lines[after] == lines[first]:
                continue
            pieces = "".join(draw_line(row, lines[first]))
            if pieces:
                name = f"s{first}-{after}"
                begin = 100 * screens[first][0] / end if first else 0
                over = 100 * screens[after][0] / end if after < len(screens) else 100
                rules[name] = (begin, over)
                hidden = "" if after == len(screens) else ' opacity="0"'
                shown.append(f'<g class="{name}"{hidden}>{pieces}</g>')
            first = after
    styles = []
    for name, (begin, over) in rules.items():
        if (begin, over) == (0, 100):
            continue
        steps = ["0%{opacity:0}"] if begin else []
        steps.append(f"{begin:.2f}%{{opacity:1}}")
        steps.append(f"{over:.2f}%{{opacity:0}}" if over < 100 else "100%{opacity:1}")
        styles.append(f"@keyframes {name}{{{''.join(steps)}}}.{name}{{animation:{name} {end:.1f}s step-end infinite}}")
    wide, high = COLUMNS * ADVANCE + 2 * MARGIN, height * LINE + 2 * MARGIN
    font = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high}" width="{wide:.0f}" height="{high}"'
        f' role="img" aria-label="A terminal: tidegate demo trains on a table larger than its memory budget">',
        "<style>@media (prefers-reduced-motion:no-preference){" + "\n".join(styles) + "}</style>",
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
        f'<g font-family="{font}" font-size="{SIZE}" fill="{INK}" xml:space="preserve" style="white-space:pre">',
        *shown,
        "</g>",
        "</svg>",
        "",
    ])


if __name__ == "__main__":
    picture = draw(record())
    if re.search(r"/(root|home|tmp|work)/", picture):
        raise SystemExit("the picture shows a path of this machine")
    (ROOT / "docs/terminal.svg").write_text(picture)
