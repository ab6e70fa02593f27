"""Makes the pictures of the dashboard in docs/ (`make screenshots`): python3 shots.py FOLDER."""
# SPDX-License-Identifier: MIT
import os
import sys

from scene import Scene, wait_until  # first: it makes the modules of the other tests known
from browser import Browser


def fill(scene):
    for name in ("billing:account:12", "billing:invoice-run", "catalogue/import", "deploy:api", "deploy:web", "reports/daily", "search/shard/2"):
        scene.run(name, "--label", name.replace(":", "/").rsplit("/", 1)[-1])
    for _ in range(3):
        scene.lease("downloads", mode="permits", permits=1, capacity=4, label="fetch")
    for name in ("nightly-backup", "search/shard/1"):
        scene.run(name, "--label", "backup.sh" if name == "nightly-backup" else "indexer")
    wait_until(lambda: scene.get("/v1/overview").json["counts"]["held"] >= 10, "the holders")
    for _ in range(4):
        scene.run("nightly-backup", "--label", "backup.sh")
    scene.run("search/shard/1", "--label", "indexer")
    scene.deadlock("billing:account:7", "billing:account:9")


def shoot(browser, address, text, dark, path):
    browser.run("localStorage.setItem('dibs.theme', args[0]); location.hash = args[1]; location.reload()", "dark" if dark else "light", address)
    browser.await_text(text)
    browser.await_("return document.documentElement.dataset.theme === args[0]", "the theme", "dark" if dark else "light")
    browser.run("await new Promise(go => setTimeout(go, 1500))")  # for the charts to be drawn
    browser.picture(path)


def main(folder):
    scene = Scene()
    browser = None
    try:
        fill(scene)
        browser = Browser()
        browser.size(1280, 720)
        browser.open(scene.page + "#token=" + scene.tokens["admin"])
        browser.await_text("wait for each other")
        shoot(browser, "#/locks", "nightly-backup", False, os.path.join(folder, "dashboard-locks.png"))
        shoot(browser, "#/waits", "Deadlock", True, os.path.join(folder, "dashboard-waits.png"))
    finally:
        if browser:
            browser.end()
        scene.end()


if __name__ == "__main__":
    main(sys.argv[1])
