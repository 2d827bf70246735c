"""Draws the picture of the dashboard in the documentation.

python tests/browser/screenshot.py docs/deploy/dashboard.png [--width 1100] [--dark] [--users 12000]
"""

from __future__ import annotations

import argparse
import base64
import io
import tempfile
from pathlib import Path

from PIL import Image

from browser.showcase import browser, media, populate, resize, serving
from patience import until


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--width", type=int, default=1100)
    parser.add_argument("--users", type=int, default=12_000)
    parser.add_argument("--dark", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, token = populate(Path(folder), asked.users, 20_000, 150, 9.0)
        with serving(path, token) as server, browser(asked.width, 900) as driver:
            media(driver, dark=asked.dark)
            driver.get(server.url)
            state = "return document.documentElement.dataset.stamp"
            seen: list[str] = []

            def settled() -> bool:
                driver.get(server.url)
                seen.append(driver.execute_script(state))
                return len(seen) > 3 and len(set(seen[-3:])) == 1

            until(settled)
            tall = driver.execute_script("return document.documentElement.scrollHeight")
            resize(driver, asked.width, tall)
            drawn = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
            picture = Image.open(io.BytesIO(base64.b64decode(drawn))).convert("RGB")
            picture.quantize(64).save(asked.file, optimize=True)
    print(f"wrote {asked.file}, {asked.file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
