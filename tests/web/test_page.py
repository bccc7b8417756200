# SPDX-License-Identifier: MIT
"""The walkthrough page in a real browser, opened from disk: every control of
every figure, numbers against the program's own, themes, widths, keyboard,
paper, no script, accessibility. Screenshots stay in build/check/page/."""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.parse

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import page_driver  # noqa: E402
from page_driver import PAGE, ROOT, Browser, axe_source  # noqa: E402
from tb_cli import Fail, Skip, add, alone, test  # noqa: E402

LIMIT = 800 * 1024  # bytes of the page
NARROW, WIDE = 375, 1280

WHY = page_driver.missing()
if WHY:
    print(WHY)
    sys.exit(77)
page = Browser()
page.size(WIDE)
page.open()


def cli(t, shot, settings=""):
    args = ["picture", shot, "--json"] + (["--set", settings] if settings else [])
    return t.run(*args, rc=0).json()


ROWS = {}


def rows(t):
    if not ROWS:
        for shot in t.run("picture", "--list", "--json", rc=0).json()["shots"]:
            ROWS[shot["name"]] = shot["inputs"]
    return ROWS


def settings_of(command):
    found = re.search(r"--set '(.*)'$", command)
    return found.group(1) if found else ""


# --- the file ---------------------------------------------------------------

@test
def size_and_policy(t):
    t.ok(os.path.getsize(PAGE) <= LIMIT, os.path.getsize(PAGE))
    with open(PAGE, encoding="utf-8") as f:
        html = f.read()
    t.has(html, "default-src 'none'", "wasm-unsafe-eval")
    t.ok(not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=[\"']?(https?:)?//",
                       html), "something is loaded from elsewhere")


@test
def nothing_is_fetched_or_complained_about(t):
    page.errors()
    page.open()
    fetched = page.run("return performance.getEntriesByType('resource')"
                       ".map(e => e.name).filter(n => !/^(data|blob):/.test(n))")
    t.eq(fetched, [])
    for shot in page.figures():
        page.settle(shot)
    t.eq(page.errors(), [])


@test
def every_shot_has_its_place(t):
    there = page.figures()
    # these steps are made of cards and text that can be answered, not of a picture
    t.eq(sorted(set(rows(t)) - set(there)), ["CHECK", "RECALL", "RETELL"],
         "shots without a step")
    t.eq(len(there), len(set(there)))


# --- figures ----------------------------------------------------------------

def another(row):
    """Values other than the row's own, the likeliest first."""
    if row["kind"] == "switch":
        return ["0" if row["own"] == "1" else "1"]
    if row["kind"] == "choice":
        return [c for c in row["choices"].split("|") if c != row["own"]]
    if row["kind"] == "number":
        own, low, high = float(row["own"]), row["low"], row["high"]
        step = row["step"] or (high - low) / 20
        tries = [own * 2 if own else step, own + step, own - step, own / 2, low, high]
        whole = [round(v) if row["whole"] else float("%.3g" % v) for v in tries]
        return ["%.10g" % v for v in whole if low <= v <= high and v != own]
    if row["kind"] == "list":
        values = [float(v) for v in row["own"].strip("[]").split(",")]
        for k in range(len(values)):
            for v in (values[k] + 1, values[k] - 1, (row["low"] + row["high"]) / 2):
                if row["low"] <= v <= row["high"]:
                    changed = values[:k] + [v] + values[k + 1:]
                    return ["[%s]" % ",".join("%.10g" % x for x in changed)]
    return []


def agree(t, shot, seen, settings):
    """What the page shows is what the program prints for those settings."""
    doc = cli(t, shot, settings)
    shown = {n["id"]: n["shown"] for n in doc["numbers"]}
    for name, text in seen["numbers"].items():
        t.eq(text, shown.get(name), shot, settings, name)
    t.eq(seen["checks"], ["ok" if c["ok"] else "bad" for c in doc["checks"]], shot, settings)
    return doc


def move(t, shot, row):
    """One input to another value: numbers follow the program, the drawing
    changes."""
    page.put(shot, row["name"], row["own"])
    before = page.settle(shot)["svg"]
    for value in another(row):
        if not page.put(shot, row["name"], value):
            raise Fail("%s has no control for %s" % (shot, row["name"]))
        seen = page.settle(shot)
        settings = settings_of(seen["command"])
        if seen["error"]:  # the engine refuses it: the program does, too
            r = t.run("picture", shot, "--set", "%s=%s" % (row["name"], value))
            t.ok(r.rc == 3, shot, row["name"], value, seen["error"], r)
            continue
        t.has(settings, row["name"] + "=")
        agree(t, shot, seen, settings)
        if seen["svg"] != before:
            page.put(shot, row["name"], row["own"])
            return
    page.put(shot, row["name"], row["own"])
    raise Fail("%s: %s moves nothing" % (shot, row["name"]))


# Inputs that matter only where others of their shot say so.
ONLY_WITH = {
    ("S1", "T"): {"F": "attention"},
    ("S2", "T"): {"F": "attention"},
    ("N3", "seed"): {"list": "random"},
    ("S7", "z"): {"card": "a"},
}


def controls_of(shot):
    def run(t):
        own = {row["name"]: row["own"] for row in rows(t)[shot]}
        seen = page.settle(shot)
        agree(t, shot, seen, settings_of(seen["command"]))
        for row in rows(t)[shot]:
            if row["kind"] in ("matrix", "text"):
                continue
            with_ = ONLY_WITH.get((shot, row["name"]), {})
            for name, value in with_.items():
                page.put(shot, name, value)
            move(t, shot, row)
            for name in with_:
                page.put(shot, name, own[name])
        t.eq(settings_of(page.settle(shot)["command"]), "", shot, "back to its own")
    return run


for _shot in page.figures():
    add("controls_of_" + _shot, controls_of(_shot))


@test
def a_sliders_number_and_its_field_agree(t):
    page.open()
    log = ["%s %s" % (shot, row["name"]) for shot, inputs in rows(t).items()
           for row in inputs if row["log"]]
    wrong = page.run("""
      const bad = [];
      for (const s of document.querySelectorAll("input[type=range]")) {
        const field = s.nextElementSibling;
        if (field?.type !== "number") { bad.push(s.outerHTML); continue; }
        const before = field.value;
        s.value = s.max;
        s.dispatchEvent(new Event("input", { bubbles: true }));
        // of thousands of steps a slider offers the first; a logarithmic one
        // has positions, not values
        const of = s.closest("[data-shot]").dataset.shot + " " +
          s.closest("[data-input]").dataset.input;
        const end = arguments[0].includes(of) ? field.max : s.max;
        if (Number(field.value) !== Number(end) || Number(end) > Number(field.max))
          bad.push(`${s.getAttribute("aria-label")}: ${field.value} at the end, ` +
            `wanted ${end}`);
        field.value = before;
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }
      return bad;""", log)
    t.eq(wrong, [])


# --- the address ------------------------------------------------------------

@test
def state_is_in_the_address(t):
    page.open("#S5~S5:N=6,seed=2")
    seen = page.settle("S5")
    t.eq(settings_of(seen["command"]), "N=6,seed=2")
    agree(t, "S5", seen, "N=6,seed=2")
    page.put("S5", "N", "12")
    page.settle("S5")
    hash_ = urllib.parse.unquote(page.run("return location.hash"))
    t.has(hash_, "N=12", "seed=2")
    page.run("history.back()")
    seen = page.settle("S5")
    t.has(settings_of(seen["command"]), "N=6")
    page.open("#S5~S5:N=6,%zz~nothing~theme:puce")
    t.eq(page.settle("S5")["error"], "")


# --- looks ------------------------------------------------------------------

def sections():
    return page.run("return [...document.querySelectorAll('main section')].map(s => s.id)")


def looks(width, theme):
    def run(t):
        page.size(width)
        page.media(prefers_color_scheme=theme)
        page.open()
        try:
            t.ok(page.run("return document.documentElement.scrollWidth <= innerWidth"),
                 "wider than the window:", page.run(
                     "return [...document.querySelectorAll('body *')].filter(e => "
                     "e.getBoundingClientRect().right > innerWidth + 1 && "
                     "!e.closest('.scroll')).slice(0, 4).map(e => e.outerHTML.slice(0, 90))"))
            for name in sections():
                page.run("document.getElementById(arguments[0])"
                         ".scrollIntoView({ behavior: 'instant' })", name)
                page.wait("setTimeout(arguments[0], 80)")
                t.ok(len(page.picture("%s-%d-%s" % (name, width, theme))) > 5000, name)
        finally:
            page.size(WIDE)
            page.media()
    return run


for _width in (NARROW, WIDE):
    for _theme in ("light", "dark"):
        add("looks_%d_%s" % (_width, _theme), looks(_width, _theme))


@test
def panels_stack_on_a_phone(t):
    """Side by side where there is room, below each other where there is not;
    turning the phone draws them anew."""
    drawn = """const f = document.querySelector(`figure[data-shot="${arguments[0]}"]`);
      const c = f.querySelector(".canvas");
      return [c.scrollWidth <= c.clientWidth, +f.querySelector("svg").getAttribute("width")];"""
    try:
        for shot in ("N1", "N2", "N4", "S7"):
            page.size(NARROW)
            page.settle(shot)
            t.eq(page.run(drawn, shot)[0], True, shot)
            page.size(WIDE)
            page.settle(shot)
            page.wait("setTimeout(arguments[0], 200)")
            t.ok(page.run(drawn, shot)[1] > 700, shot)
    finally:
        page.size(WIDE)


@test
def letters_are_large_enough(t):
    """Figures scroll before their letters get smaller than 12 px."""
    for width in (NARROW, WIDE):
        page.size(width)
        page.open()
        small = page.run("""
          return [...document.querySelectorAll("svg.tb-figure")].filter((s) => {
            const scale = s.getBoundingClientRect().width / s.viewBox.baseVal.width;
            return [...s.querySelectorAll("text")].some((e) =>
              parseFloat(getComputedStyle(e).fontSize) * scale < 11.99);
          }).map((s) => s.getAttribute("aria-labelledby"));""")
        page.size(WIDE)
        t.eq(small, [], width)


@test
def targets_are_large_enough(t):
    page.size(NARROW)
    page.open()
    small = page.run("""
      return [...document.querySelectorAll("main button, main select, main input, summary")]
        .filter((e) => { const r = e.getBoundingClientRect();
          return r.width && (r.width < 24 || r.height < 24) &&
            !e.closest("label")?.getBoundingClientRect().height; })
        .map((e) => e.outerHTML.slice(0, 90));""")
    page.size(WIDE)
    t.eq(small[:5], [])


@test
def figures_say_what_they_show(t):
    page.open()
    wrong = page.run("""
      return [...document.querySelectorAll("svg.tb-figure")].filter((s) =>
        s.getAttribute("role") !== "img" ||
        !s.getAttribute("aria-labelledby").split(" ").every((id) =>
          document.getElementById(id)?.textContent.length > 3))
        .map((s) => s.outerHTML.slice(0, 90));""")
    t.eq(wrong, [])
    twice = page.run("""
      const seen = new Set(), twice = [];
      for (const e of document.querySelectorAll("[id]"))
        seen.has(e.id) ? twice.push(e.id) : seen.add(e.id);
      return twice;""")
    t.eq(twice[:5], [])


@test
def reduced_motion(t):
    page.media(prefers_reduced_motion="reduce")
    page.open()
    moving = page.run("""
      return [...document.querySelectorAll("svg.tb-figure *, body *")].filter((e) =>
        getComputedStyle(e).transitionDuration.split(",").some((d) => parseFloat(d) > 0.001))
        .slice(0, 3).map((e) => e.outerHTML.slice(0, 90));""")
    page.media()
    t.eq(moving, [])


@test
def on_paper(t):
    page.media("print")
    page.open()
    controls = page.run("""
      return [...document.querySelectorAll(".controls, .tools, header nav")].filter((e) =>
        e.getBoundingClientRect().height > 0).map((e) => e.className);""")
    page.media()
    t.eq(controls, [])
    pdf = base64.b64decode(page.cdp("Page.printToPDF", printBackground=True)["data"])
    os.makedirs(page_driver.SHOTS, exist_ok=True)
    path = os.path.join(page_driver.SHOTS, "page.pdf")
    with open(path, "wb") as f:
        f.write(pdf)
    t.ok(pdf.startswith(b"%PDF") and len(pdf) > 20000, len(pdf))
    if shutil.which("pdftotext"):
        text = subprocess.run(["pdftotext", path, "-"], capture_output=True, text=True).stdout
        for name in sections():
            heading = page.run("return document.getElementById(arguments[0])"
                               ".querySelector('h2, h3').textContent", name)
            t.has(" ".join(text.split()), " ".join(heading.split())[:40])


@test
def without_scripts(t):
    page.cdp("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(ready=False)
        page.size(WIDE)
        png = page.picture("no-script")
        html = page.driver.page_source
    finally:
        page.cdp("Emulation.setScriptExecutionDisabled", value=False)
    t.ok(len(png) > 5000)
    t.eq(len(re.findall(r"<figure[^>]*data-shot=", html)),
         len(re.findall(r"<svg[^>]*class=\"tb-figure\"", html)))
    t.ok(not re.search(r"<fieldset class=\"controls\">", html), "controls without a script")


# --- keyboard and axe --------------------------------------------------------

@test
def by_keyboard(t):
    from selenium.webdriver import Keys
    from selenium.webdriver.common.action_chains import ActionChains
    page.open()

    def press(*keys):
        ActionChains(page.driver).send_keys(*keys).perform()

    press(Keys.TAB)
    t.has(page.run("return document.activeElement.className"), "skip")
    press(Keys.ENTER)
    t.eq(page.run("return document.activeElement.id"), "steps")
    page.run("document.querySelector('figure[data-shot=S5] [data-input=N] "
             "input[type=range]').focus()")
    before = page.settle("S5")
    press(Keys.ARROW_RIGHT)
    after = page.settle("S5")
    t.ok(before["command"] != after["command"], after["command"])
    agree(t, "S5", after, settings_of(after["command"]))
    outline = page.run("const s = getComputedStyle(document.activeElement);"
                       "return s.outlineStyle !== 'none' || s.boxShadow !== 'none'")
    t.ok(outline, "focus is not seen")


# --- beads and the walk -------------------------------------------------------

def equation(t):
    """F6's, as the drawing has it; and what the program says of the same."""
    seen = page.settle("F6")
    agree(t, "F6", seen, settings_of(seen["command"]))
    text = page.run("return document.querySelector('figure[data-shot=F6] "
                    "svg desc').textContent")
    return text.split(". ")[0].rstrip(".")


@test
def beads_are_dragged(t):
    from selenium.webdriver.common.action_chains import ActionChains
    page.open()
    t.eq(equation(t), "x = norm(x + F(x))")

    def drag(bead, to, off=0):
        find = lambda b: page.driver.find_element("css selector", "[data-bead=%s]" % b)
        ActionChains(page.driver).click_and_hold(find(bead)).move_by_offset(6, 3) \
            .move_to_element_with_offset(find(to), off, off).release().perform()
        return equation(t)

    t.eq(drag("merged", "before"), "x = x + F(norm(x))")
    t.eq(page.run("return document.querySelector('[data-input=order] select').value"),
         "pre", "the select follows")
    t.eq(page.run("return document.activeElement.dataset.bead"), "before")
    t.eq(drag("box", "before", -20), "x = x + norm(F(x))", "the box passes the norm")
    t.eq(drag("behind", "skip"), "x = norm(x) + F(x)")
    t.eq(drag("add", "skip", -20), "x = norm(x + F(x))", "the plus passes the norm")
    t.eq(drag("merged", "box", -70), "x = x + F(x)", "dropped beside the roads")
    for place in ("fork", "behind", "merged"):
        page.driver.find_element("css selector", "[data-bead=%s]" % place).click()
        page.settle("F6")
    # no order of the list: the equation is written out
    t.eq(equation(t), "n = norm(x); x = norm(n + norm(F(n)))")
    page.put("F6", "order", "pre")
    t.eq(equation(t), "x = x + F(norm(x))", "an order puts the text away")


@test
def beads_are_moved_by_keys(t):
    from selenium.webdriver import Keys
    from selenium.webdriver.common.action_chains import ActionChains
    page.open()
    page.settle("F6")
    page.run("document.querySelector('[data-bead=merged]').focus()")

    def press(key):
        ActionChains(page.driver).send_keys(key).perform()
        return equation(t)

    t.eq(press(Keys.ARROW_LEFT), "x = x + norm(F(x))")
    t.eq(press(Keys.ARROW_LEFT), "x = norm(x) + F(x)")
    t.eq(press(Keys.HOME), "n = norm(x); x = n + F(n)")
    t.eq(press(Keys.END), "x = norm(x + F(x))")
    t.has(page.run("return document.activeElement.ariaLabel"), "after the plus")
    t.eq(press(Keys.DELETE), "x = x + F(x)")
    t.eq(press(Keys.ENTER), "x = norm(x + F(x))")
    page.run("document.querySelector('[data-bead=add]').focus()")
    t.eq(press(Keys.ARROW_RIGHT), "x = norm(x) + F(x)")
    t.eq(press(Keys.ARROW_LEFT), "x = norm(x + F(x))")


WALKERS = """return [...document.querySelectorAll('figure[data-shot=F3] .walker')]
  .map(w => w.getAttribute('transform'))"""


@test
def the_learning_arrow_walks(t):
    page.open()
    page.settle("F3")
    t.eq(page.run(WALKERS), [], "nothing moves by itself")
    page.run("document.querySelector('[data-walk]').click()")
    most, last, moves = 0, None, 0
    until = time.monotonic() + 60
    while time.monotonic() < until:
        now = page.run(WALKERS)
        most, moves, last = max(most, len(now)), moves + (now != last), now
        if not now and moves > 2:
            break
    t.eq(most, 2, "both roads at once")
    t.ok(moves > 5 and last == [], moves, last)
    page.put("F3", "broken", "1")
    page.settle("F3")
    page.media(prefers_reduced_motion="reduce")
    stills = []
    for _ in range(6):
        page.run("document.querySelector('[data-walk]').click()")
        now = page.run(WALKERS)
        page.wait("setTimeout(arguments[0], 60)")
        t.eq(page.run(WALKERS), now, "a still does not move")
        stills.append(now)
    page.media()
    page.put("F3", "broken", "0")
    t.eq([len(s) for s in stills], [1, 1, 1, 1, 1, 0], "a broken road is not taken")
    t.eq(len({s[0] for s in stills[:5]}), 5)


# --- say it back, cards, checklist, map ----------------------------------------

def keys(*which):
    from selenium.webdriver.common.action_chains import ActionChains
    ActionChains(page.driver).send_keys(*which).perform()


def text_of(selector):
    return page.run("return document.querySelector(arguments[0])?.textContent ?? ''",
                    selector).strip()


def forget():
    """As a reader who comes for the first time."""
    page.open()
    page.run("localStorage.clear()")
    page.open()


@test
def retelling_is_marked(t):
    from selenium.webdriver import Keys
    told = t.run("picture", "RETELL", "--json", rc=0).json()["panels"][0]
    page.open()
    t.eq(page.run("return document.querySelectorAll('.retell input').length"), 3)
    t.eq(page.run("return [...document.querySelectorAll('#RETELL .thumbs a')]"
                  ".map(a => a.hash + (a.querySelector('use').getBBox().width > 100))"),
         ["#S2true", "#S5true", "#S6true"])
    page.run("document.querySelector('.retell input').focus()")
    keys(told["blanks"][0]["answers"][-1], Keys.TAB, "nonsense", Keys.TAB,
         told["blanks"][2]["answers"][0].upper(), Keys.TAB, Keys.ENTER)
    t.has(text_of(".retell .mark"), "2 of 3")
    text = page.run("return document.querySelector('.retell').textContent")
    t.has(text, "you wrote: nonsense", told["blanks"][1]["answers"][0])


@test
def cards_by_keyboard(t):
    from selenium.webdriver import Keys
    cards = [c for c in t.run("recall", "--json", rc=0).json()["cards"]
             if c["deck"] == "recall"]
    t.eq(len(cards), 6)
    forget()
    page.run("document.querySelector('.deck .ask').focus()")
    for i, card in enumerate(cards):
        t.has(text_of(".ask .left"), "%d of 6" % (6 - i))
        t.eq(text_of(".ask .answer"), "", "shown before it is asked for")
        keys(Keys.SPACE if i % 2 else Keys.ENTER)
        t.has(text_of(".ask .answer").replace("\xa0", " "), card["answer"][:12], "Prove it")
        keys("3")
    t.has(text_of(".ask .left"), "Done.")
    page.open()
    t.has(text_of(".ask .left"), "Done.")
    page.run("document.querySelector('[data-do=all]').click()")
    t.has(text_of(".ask .left"), "24 of 24")
    page.run("localStorage.clear()")


@test
def each_card_is_proved(t):
    """Its link opens the figure in the state that shows it, whatever was there."""
    page.open()
    page.put("S5", "N", "7")
    page.settle("S5")
    for card in t.run("recall", "--json", rc=0).json()["cards"]:
        page.run("document.querySelector(`[data-card='${arguments[0]}'] .proof a`).click()",
                 card["id"])
        t.eq(page.run("return document.activeElement.id"), card["shot"], card["id"])
        seen = page.settle(card["shot"])
        t.eq(seen["error"], "", card["id"])
        if card["settings"].endswith("eps=0"):  # drawn, and refused: exit 3
            t.has(seen["says"], "exit code 3")
        else:
            agree(t, card["shot"], seen, card["settings"])


@test
def cards_are_saved_as_the_program_does(t):
    page.open()
    for how in ("anki", "obsidian"):
        ours = page.run("return document.getElementById(arguments[0]).textContent", how)
        t.eq(ours, t.run("recall", "--export", how, rc=0).out, how)


@test
def the_checklist_asks(t):
    forget()
    items = page.run("return document.querySelectorAll('#CHECK [data-check]').length")
    t.eq(items, 8)

    def ask(n):
        return page.run("""
          const item = document.querySelectorAll("#CHECK [data-check]")[arguments[0] - 1];
          item.querySelector(".test > button").click();
          return item.querySelector("form").dataset.question;""", n)

    def answer(n, values):
        return page.run("""
          const [n, values] = arguments;
          const item = document.querySelectorAll("#CHECK [data-check]")[n - 1];
          [...item.querySelectorAll("[name=guess]")].forEach((f, i) => { f.value = values[i]; });
          item.querySelector("form button").click();
          return [item.querySelector("[role=status]").textContent,
            item.querySelector("input[type=checkbox]").checked];""", n, values)

    for n in range(1, 9):
        numbers = {x["id"]: x["value"] for x in cli(t, "CHECK", ask(n) + ",reveal=1")["numbers"]}
        truth = [numbers["test.answer.%d" % (i + 1)] for i in range(int(numbers["test.numbers"]))]
        t.eq(answer(n, [v + 1 for v in truth])[1], False, n)
        t.eq(answer(n, truth), ["Right.", True], n)
    page.open()
    t.eq(page.run("return document.querySelectorAll('#CHECK [data-check] > label :checked')"
                  ".length"), 8, "ticks outlive the page")
    ask(4)
    for left in (2, 1, 0):
        said = answer(4, [-1, -1])[0]
        t.has(said, "%d more" % left if left else "step")
    t.eq(page.run("return document.activeElement.id"), "F4")
    page.run("localStorage.clear()")


@test
def the_map_is_ticked(t):
    forget()
    page.settle("F-MAP")
    page.run("document.querySelector('#F2 .done input').click()")
    seen = page.settle("F-MAP")
    t.eq(settings_of(seen["command"]), "done=[2]")
    page.run("document.querySelectorAll('[data-input=done] .done input')[0].click()")
    seen = page.settle("F-MAP")
    t.eq(settings_of(seen["command"]), "done=[1,2]")
    agree(t, "F-MAP", seen, "done=[1,2]")
    page.open()
    t.eq(page.run("return document.querySelector('#F1 .done input').checked"), True)
    page.run("localStorage.clear()")


# --- tables -------------------------------------------------------------------

def column(table, k):
    return page.run("return [...document.querySelector(arguments[0]).tBodies[0].rows]"
                    ".map(r => r.cells[arguments[1]].textContent.trim())", table, k)


def pasted():
    from selenium.webdriver import Keys
    from selenium.webdriver.common.action_chains import ActionChains
    page.run("""const f = document.createElement("textarea");
      f.id = "pasted"; document.body.prepend(f); f.focus();""")
    ActionChains(page.driver).key_down(Keys.CONTROL).send_keys("v") \
        .key_up(Keys.CONTROL).perform()
    return page.run("const f = document.getElementById('pasted'); f.remove(); return f.value")


def sorts_and_copies(t, table, head, copy):
    """The column of that head by a press on it, and back; then as TSV."""
    number = float
    heads = page.run("return [...document.querySelectorAll(arguments[0] + ' thead th')]"
                     ".map(th => th.textContent)", table)
    k = heads.index(head)
    before = column(table, k)
    t.ok(len(set(before)) > 2, before)
    head = "document.querySelectorAll('%s thead th button')[%d].click()" % (table, k)
    page.run(head)
    up = column(table, k)
    t.eq([number(v) for v in up], sorted(map(number, before)))
    t.eq(page.run("return document.querySelectorAll('%s thead th')[%d].ariaSort" % (table, k)),
         "ascending")
    page.run(head)
    t.eq([number(v) for v in column(table, k)], sorted(map(number, before), reverse=True))
    rows = page.run("return [...document.querySelector(arguments[0]).rows].map(r =>"
                    " [...r.cells].map(c => c.textContent.trim()).join('\\t'))", table)
    page.cdp("Browser.grantPermissions", permissions=["clipboardReadWrite",
                                                       "clipboardSanitizedWrite"])
    page.driver.find_element("css selector", copy).click()
    page.wait("setTimeout(arguments[0], 100)")
    t.eq(pasted().split("\n"), rows)


@test
def tables_of_a_figure_sort(t):
    page.open()
    page.settle("S5")
    page.run("document.querySelector('[data-shot=S5] .tables').open = true")
    page.wait("setTimeout(arguments[0], 200)")
    sorts_and_copies(t, "[data-shot=S5] .tables table", "toll (RMS)", "[data-shot=S5] .tables div > button")


@test
def tables_of_a_report_sort(t):
    t.run("flow", "post-ln", "--depth", "3", "--width", "16", "--heads", "2",
          "--report", "r.html", rc=0)
    page.driver.get("file://" + os.path.join(t.dir, "r.html"))
    page.run("document.querySelectorAll('details').forEach(d => { d.open = true; });"
             "const box = [...document.querySelectorAll('.numbers')].find(b =>"
             " b.textContent.includes('lane below'));"
             "box.id = 'first'; box.previousElementSibling.id = 'copy';")
    sorts_and_copies(t, "#first table", "lane below", "#copy")
    t.eq(page.errors(), [])


def accessible(theme):
    def run(t):
        source = axe_source()
        page.media(prefers_color_scheme=theme)
        page.open()
        page.cdp("Page.setBypassCSP", enabled=True)
        page.run(source)
        found = page.wait("""
          const done = arguments[0];
          axe.run(document, { resultTypes: ["violations"] }).then((r) =>
            done(JSON.stringify(r.violations.map((v) => [v.impact, v.id,
              v.nodes.length, v.nodes[0].html.slice(0, 160), v.nodes[0].failureSummary]))));""")
        page.media()
        grave = [v for v in json.loads(found) if v[0] in ("serious", "critical")]
        t.eq(grave, [])
    return run


# axe does not know what lies under the letters of a drawing: here the shapes are
# asked for, and laid over each other on the colour of the paper.
CONTRASTS = """
  const number = (c) => (c.match(/[\\d.]+/g) ?? []).map(Number);
  const light = (c) => { const [r, g, b] = c.map((v) => v / 255).map((v) =>
    v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const over = (top, a, below) => top.map((v, i) => a * v + (1 - a) * below[i]);
  const clear = (e) => { let a = 1;
    for (; e.matches("svg *"); e = e.parentElement) a *= getComputedStyle(e).opacity;
    return a; };
  const paper = number(getComputedStyle(document.body).backgroundColor);
  const weak = [];
  for (const text of arguments[0].querySelectorAll("text")) {
    const r = text.getBoundingClientRect(), style = getComputedStyle(text);
    const under = document.elementsFromPoint(r.left + r.width / 2, r.top + r.height / 2)
      .filter((e) => e.matches("svg.tb-figure :not(text, tspan)") &&
        e.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING).reverse();
    let ground = paper;
    for (const e of under) {
      const [r, g, b, a = 1] = number(getComputedStyle(e).fill);
      if (b !== undefined)
        ground = over([r, g, b], a * getComputedStyle(e).fillOpacity * clear(e), ground);
    }
    const ink = over(number(style.fill).slice(0, 3), clear(text), ground);
    const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || size >= 18.66 && style.fontWeight >= 600;
    if ((a + 0.05) / (b + 0.05) < (large ? 3 : 4.5))
      weak.push(`${text.textContent}: ${((a + 0.05) / (b + 0.05)).toFixed(2)}`);
  }
  return weak;"""


def letters_stand_out(theme):
    def run(t):
        page.size(WIDE, 3000)
        page.media(prefers_color_scheme=theme)
        page.open()
        weak = {}
        for shot in page.figures():
            page.settle(shot)
            found = page.run(CONTRASTS, page.driver.find_element(
                "css selector", "figure[data-shot='%s'] svg.tb-figure" % shot))
            if found:
                weak[shot] = found[:6]
        page.size(WIDE)
        page.media()
        t.eq(weak, {})
    return run


for _theme in ("light", "dark"):
    add("axe_" + _theme, accessible(_theme))
    add("letters_stand_out_" + _theme, letters_stand_out(_theme))


# --- how quick ---------------------------------------------------------------

@test
def timings_are_measured(t):
    """From input to paint, as the page measures itself; printed, not judged."""
    page.open()
    for shot in page.figures():
        page.settle(shot)
    all_ = page.run("return performance.getEntriesByType('measure')"
                    ".map(e => [e.name, e.duration])")
    with open(os.path.join(page_driver.SHOTS, "timings.txt"), "w", encoding="utf-8") as f:
        for name, ms in all_:
            f.write("%-24s %7.1f ms\n" % (name, ms))
    t.ok(isinstance(all_, list))


try:
    alone(__name__)
finally:
    page.close()
