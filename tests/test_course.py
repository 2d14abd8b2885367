"""The course beside the book: decks, sheets to print, notebooks that students open anywhere."""

import contextlib
import copy
import functools
import html
import inspect
import io
import re
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import axe_playwright_python
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pages
import pytest
import torch
from bs4 import BeautifulSoup
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient
from pypdf import PdfReader

import drocox
from drocox.exercises import check, names, question, quiz
from drocox.exercises.patients import SIX
from drocox.paper.datasets import dataset_summary

ROOT = Path(__file__).resolve().parents[1]
TEACHING = ROOT / "book" / "teaching"
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import course  # noqa: E402
import decks  # noqa: E402
import exams  # noqa: E402
import notebooks  # noqa: E402
import plain  # noqa: E402
import quotes  # noqa: E402
import sheets  # noqa: E402
import twins  # noqa: E402

DUAL = ROOT / "book" / "method" / "dual.md"
COX_LOSS = ROOT / "book" / "foundations" / "cox-loss.md"
BROWSER = pytest.mark.skipif(pages.CHROMIUM is None, reason="no Chromium here")
SOURCES = [*TEACHING.glob("slides/*.md"), *TEACHING.glob("sheets/*.md")]
deck_of = functools.cache(decks.deck)
all_sheets = functools.cache(sheets.sheets)


def written(name):
    return (TEACHING / name).read_text(encoding="utf8")


# What decks and sheets say


def numbers_of_the_six():
    """Every number with three digits that decks and sheets may say of the six patients."""
    time, event, x = (SIX[name].to_numpy() for name in ("time", "event", "x"))
    found = []
    others = event | (SIX.index == "E"), event | (SIX.index == "B"), event & (SIX.index != "C")
    for died in (event, *others):
        steps = [1 - (died & (time == t)).sum() / (time >= t).sum() for t in time[died]]
        found += [*np.cumprod(steps)]
    for theta in (np.log(2), 0.0, -np.log(2), -1.0):
        losses = drocox.cox_losses(torch.tensor(theta * x), time, event).numpy()
        found += [*losses, losses.sum(), losses.mean()]
    for more in ((SIX.index == "D"), 2 * (SIX.index == "E")):  # of a step of x
        riskier = np.log(2) * (x + more)
        found += [*drocox.cox_losses(torch.tensor(riskier), time, event).numpy()]
    losses = drocox.cox_losses(torch.tensor(np.log(2) * x), time, event)
    by_group = losses.numpy()[:, None] * (SIX[["group"]].to_numpy() == ["a", "b"])
    found += [*by_group.sum(axis=0) / 3, losses.sort().values[-2:].mean()]
    for alpha in (0.2, 0.4, 0.5):
        found += [*drocox.worst_case_weights(losses, alpha).numpy()]
        found += [drocox.dro_risk(losses, alpha)]
        found += [drocox.optimal_eta(losses, drocox.dual_constant(alpha))]
    for k in (6, 3, 2):  # the passes of the iteration at 0.2
        mean, variance = (f(losses.sort().values[-k:].numpy()) for f in (np.mean, np.var))
        found += [mean, variance, mean - np.sqrt(variance / (k / (6 * 0.2) - 1))]
    at_risk = (time >= time[:, None]) * 2.0**x
    expected = event @ (at_risk / at_risk.sum(axis=1, keepdims=True))
    when = np.log([(time >= t).sum() for t in time[event]])
    found += [*when, *(losses.numpy()[event] - when)]
    found += [*expected, *(expected - event), 100 / drocox.dual_constant(0.1, rule="paper") ** 2]
    return {f"{abs(float(value)):.3f}" for value in found}


def test_every_number_of_the_six_patients_is_a_computed_one():
    known = numbers_of_the_six()
    for path in SOURCES:
        said = set(re.findall(r"(?<![\d.])\d\.\d{3}(?!\d)", path.read_text(encoding="utf8")))
        assert said <= known, path.name


def visible(markup, steps=True):
    """What a reader of a page sees, without what the speaker says; steps: what comes by and by."""
    words = re.sub(r"<svg.*?</svg>", "", markup, flags=re.DOTALL)  # pictures take long to read
    soup = BeautifulSoup(words, "html.parser")
    hidden = ".notes, script, style, .katex-html, .colophon"
    for part in soup.select(hidden if steps else f"{hidden}, .fragment"):
        part.decompose()
    return soup.get_text(" ")


def says(text, number):
    return re.search(rf"(?<![\d.]){re.escape(number)}(?![\d]|\.\d)", text) is not None


@pytest.mark.parametrize("deck", decks.DECKS)
def test_a_deck_says_no_number_before_it_asks_for_it(deck):
    """The handout is on the desks from the beginning, and a slide shows its question first."""
    asked, before = 0, visible(all_sheets()["handout"])
    for slide in decks.slides_of(deck):
        body = slide.partition("\nNote:\n")[0]
        made = quotes.rendered(quotes.fetched(body))
        shown = visible(made, steps=False)
        for kind, what in quotes.REFERENCE.findall(body):
            for number in what.split() if kind == "asks" else []:
                asked += 1
                assert not says(before + shown, number), (number, shown)
        before += visible(made)
    assert asked >= 1


def test_the_decks_know_every_number_that_their_steps_give_away():
    """The numbers that steps below a question tell for the first time are those asked for."""
    number = r"(?<![\d.])\d\.\d{3}(?!\d)"
    for deck in ("session-1", "session-2"):
        before = ""
        for slide in decks.slides_of(deck):
            question_, _, rest = slide.partition("{asks}`")
            if rest:
                steps = "\n".join(re.findall(r"^(?:\d\)|\+) .*$", rest, re.MULTILINE))
                told = set(re.findall(number, steps)) - set(re.findall(number, before + question_))
                assert told <= set(rest.partition("`")[0].split()), deck
            before += slide


def answers_of(name):
    """The numbers that a sheet asks for, where none of them is a number of few digits."""
    found = []
    for exercise in re.findall(r"\{exercise\}`([\w-]+)`", written(f"sheets/{name}.md")):
        answer = sheets.right_answer(sheets.exercise(exercise).words)
        found += re.findall(r"−?\d+\.\d{3,}", answer)
    return found


def test_no_deck_handout_or_notebook_has_a_number_that_a_quiz_asks_for():
    said = visible(all_sheets()["handout"])
    for session in notebooks.SESSIONS:
        said += visible(deck_of(session)) + written(f"notebooks/{session}.txt")
    asked = re.findall(r"<b>([\d.]+)</b>", all_sheets()["quiz-solutions"])
    assert len(asked) == 3
    assert [number for number in asked if says(said, number)] == []


@pytest.mark.parametrize("number", [1, 2, 3])
def test_no_deck_sheet_or_notebook_gives_an_answer_of_a_sheet_before_it_is_due(number):
    """Those of a session's sheet, in what students see up to the end of that session."""
    made = all_sheets()
    said = [visible(made["handout"])]
    for session in range(1, number + 1):
        said += [visible(deck_of(f"session-{session}")), visible(made[f"sheet-{session}"])]
        said += [written(f"notebooks/session-{session}.txt")]
    text = " ".join(said)
    # 5/6, the first step of any curve of six, is told in class; 2/3 is a weight there
    answers = [each for each in answers_of(f"sheet-{number}") if each not in {"0.833", "0.667"}]
    assert number == 3 or answers
    assert [answer for answer in answers if says(text, answer)] == []


def test_live_slides_open_before_the_answers_of_later_slides():
    """The level of the dual stands below all levels that a later slide tabulates."""
    for deck in ("lecture", "session-2"):
        (start,) = re.findall(r'"eta":(-?[\d.]+)', deck_of(deck))
        assert float(start) < -0.5
    votes = re.findall(r"^- (the .*?|those .*?)[,?]", written("slides/session-3.md"), re.MULTILINE)
    script = (ROOT / "book/_static/explore/weights.js").read_text(encoding="utf8")
    assert set(re.findall(r'^    "(.*?)": "', script, re.MULTILINE)) | {votes[0]} >= set(votes[:3])


@pytest.mark.parametrize("deck", decks.DECKS)
def test_no_slide_is_blank_while_the_room_works(deck):
    for slide in decks.slides_of(deck)[1:]:
        body, _, note = slide.partition("\nNote:\n")
        heading, _, rest = body.strip().partition("\n")
        shown = visible(quotes.rendered(quotes.fetched(rest)), steps=False).split()
        if "for the room" in note and not re.search(r"\{(figure|explore)\}", body):
            assert len(shown) > 8, heading


def test_decks_and_sheets_say_how_large_flc_is():
    flc = dataset_summary().loc["flc"]
    text = "\n".join(path.read_text(encoding="utf8") for path in SOURCES)
    assert set(re.findall(r"(\d+,\d{3}) people", text)) == {f"{flc['rows']:,}"}
    assert set(re.findall(r"(\d+) % censored", text)) == {f"{100 * flc['censoring_rate']:.0f}"}


@pytest.mark.parametrize("deck", decks.DECKS)
def test_a_deck_is_complete_and_its_minutes_go_on(deck):
    page = deck_of(deck)
    assert not quotes.REFERENCE.search(page)
    assert 'alt=""' not in page and 'aria-label=""' not in page
    minutes = [int(minute) for minute in re.findall(r"Minute (\d+)", written(f"slides/{deck}.md"))]
    assert minutes == sorted(minutes) and minutes[0] == 0 and minutes[-1] <= 73


def test_the_speakers_formulas_need_no_style():
    notes = re.findall(r'<aside class="notes">.*?</aside>', deck_of("session-2"), re.DOTALL)
    assert any("<math" in note for note in notes)
    assert not any("katex-html" in note for note in notes)


def slides_of(page, site):
    """Deck and number of each slide, with the deck open in the page."""
    for deck in decks.DECKS:
        page.goto(f"{site}course/{deck}.html")
        page.wait_for_function("window.Reveal && Reveal.isReady()")
        for number in range(page.evaluate("Reveal.getTotalSlides()")):
            yield deck, number


LETTERS = """() => [...document.querySelectorAll("section.present figure.quoted svg use")]
  .filter((e) => e.checkVisibility({visibilityProperty: true}) && e.closest("g[transform*=scale]"))
  .map((e) => e.closest("g[transform*=scale]").getScreenCTM())
  .map((m) => 100 * Math.hypot(m.b, m.d))"""  # matplotlib draws letters of size 100


@BROWSER
@pytest.mark.slow
def test_every_slide_can_be_read_at_the_back(chromium, site):
    """Letters of figures at each of their steps, then the slide as a whole."""
    check_slide = (ROOT / "tests" / "slides.js").read_text(encoding="utf8")
    problems = []
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("requestfailed", lambda request: problems.append(request.url))
    seen = 0
    for deck, number in slides_of(page, site):
        page.evaluate("(number) => Reveal.slide(number, 0, -1)", number)
        while True:
            sizes = page.evaluate(LETTERS)
            seen += len(sizes) > 0
            assert min(sizes, default=18) >= 18, (deck, number + 1, min(sizes))
            if not page.evaluate("Reveal.availableFragments().next"):
                break
            page.evaluate("Reveal.nextFragment()")
        found = page.evaluate(check_slide, number)
        problems += [f"{deck} {number + 1}: {problem}" for problem in found]
    page.close()
    assert seen > 10, seen
    assert problems == []


@BROWSER
@pytest.mark.slow
def test_a_clicker_turns_live_slides_after_their_controls_were_used(chromium, site):
    """Each control of each explorable, on the first slide that has it."""
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    tried = set()
    for deck, number in slides_of(page, site):
        page.evaluate("(number) => Reveal.slide(number)", number)
        controls = page.locator("section.present .explore :is(input, button)")
        for place in range(controls.count()):
            page.evaluate("(number) => Reveal.slide(number)", number)
            control = controls.nth(place)
            which = control.evaluate("e => e.closest('.explore').dataset.explore"), place
            if which in tried or not control.is_visible():
                continue
            tried.add(which)
            for key in ("PageDown", "ArrowRight"):
                page.evaluate("(number) => Reveal.slide(number)", number)
                if control.is_visible():  # a guess is made only once
                    control.click()
                page.wait_for_timeout(100)  # nobody is quicker, and a busy machine is slow
                page.keyboard.press(key)
                assert page.evaluate("Reveal.getIndices().h") == number + 1, (deck, number)
            page.evaluate("(number) => Reveal.slide(number)", number)
            if control.is_visible():  # reached by the keyboard
                control.focus()
                page.keyboard.press("PageDown")
                assert page.evaluate("Reveal.getIndices().h") == number + 1
    page.close()
    assert len(tried) > 20, tried


@BROWSER
@pytest.mark.slow
@pytest.mark.parametrize("view", ["?print-pdf", ""])
def test_a_printed_deck_has_a_page_for_each_slide_and_every_figure(chromium, site, view):
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    for deck in decks.DECKS:
        page.goto(f"{site}course/{deck}.html{view}")
        page.wait_for_function("window.Reveal && Reveal.isReady()")
        page.wait_for_timeout(800)
        printed = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True)))
        assert len(printed.pages) == len(decks.slides_of(deck))
        page.emulate_media(media="print")
        small = page.evaluate("""() => [...document.querySelectorAll(
          "figure.quoted .output > :is(img, svg), .explore-picture > svg")]
          .filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 200)
          .map((e) => e.closest("section").querySelector("h2").textContent)""")
        assert small == []
        page.emulate_media(media="null")  # or PDFs would look like the screen
    page.close()


@pytest.mark.slow
def test_no_two_elements_of_a_page_share_an_id(built):
    """Else a picture may be cut by the frame of another. Scripts put explorables' pictures anew."""
    twice = {}
    for page in built.rglob("*.html"):
        fixed = re.sub(
            r"<script.*?</script>|<figure[^>]* data-explore=.*?</figure>",
            "",
            page.read_text(encoding="utf8"),
            flags=re.DOTALL,
        )
        ids = Counter(re.findall(r'<[^<>]*?\sid="([^"]*)"', fixed))
        twice[page.name] = [name for name, count in ids.items() if count > 1]
    assert len(twice) > 30
    assert {page: ids for page, ids in twice.items() if ids} == {}


@pytest.mark.slow
def test_the_build_prints_decks_where_a_browser_is_at_hand(built):
    made = {path.stem for path in (built / "course").glob("*.pdf")}
    assert made == (set(decks.DECKS) if course.CHROMIUM else set())


def test_without_a_browser_no_page_speaks_of_printed_decks(monkeypatch):
    pages_ = ("teach-tomorrow.md", "instructors-guide.md", "syllabus.md", "notebooks/README.md")
    monkeypatch.setattr(course, "CHROMIUM", None)
    for name in pages_:
        left = course.printed_only(written(name))
        assert not re.search(r"PDF|\.pdf|[Pp]rinted deck", left), name
    monkeypatch.setattr(course, "CHROMIUM", "chromium")
    assert course.printed_only(written(pages_[0])) == written(pages_[0])


@BROWSER
@pytest.mark.slow
def test_axe_has_no_serious_finding_in_decks_and_sheets(chromium, site):
    """With 7 to 1 as the least contrast.

    Meanwhile other slides and the drawn signs of formulas and figures, which axe passes over, are
    out of the page: walking through them takes ten times as long. So are the empty backgrounds of
    slides, in front of which axe does not judge colours.
    """
    script = Path(axe_playwright_python.__file__).parent / "axe.min.js"
    run = """async (part) => {
      const aside = `.slides > section:not(.present), .backgrounds, .katex-html,
        .present figure.quoted svg > *`;
      const away = [...document.querySelectorAll(aside)].map((e) => [e, new Comment()]);
      for (const [e, mark] of away) e.replaceWith(mark);
      const {violations} = await axe.run({include: [[part]], exclude: [[".katex"]]}, {
        resultTypes: ["violations"], rules: {"color-contrast-enhanced": {enabled: true}}});
      for (const [e, mark] of away.reverse()) mark.replaceWith(e);
      return violations.filter((found) => ["serious", "critical"].includes(found.impact))
        .map((found) => found.id + ": " + found.nodes[0].html);
    }"""
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    found = {}
    for deck, number in slides_of(page, site):
        if not number:
            page.evaluate(script.read_text(encoding="utf8"))
        page.evaluate("(number) => Reveal.slide(number, 0, 99)", number)
        found[deck, number + 1] = page.evaluate(run, "section.present" if number else "html")
    for name in (*sheets.SHEETS, *sheets.QUIZZES, "start"):
        page.goto(f"{site}course/{name}.html")
        page.evaluate(script.read_text(encoding="utf8"))
        found[name] = page.evaluate(run, "html")
    page.close()
    assert {where: what for where, what in found.items() if what} == {}


@pytest.mark.slow
def test_the_students_file_has_three_notebooks_the_package_and_a_page_to_start_from(built):
    with zipfile.ZipFile(built / "course" / "students.zip") as archive:
        names_ = archive.namelist()
        start = archive.read("start.html").decode()
    (wheel,) = [name for name in names_ if name.endswith(".whl")]
    own = {f"notebooks/{name}/{name}.ipynb" for name in notebooks.SESSIONS}
    assert set(names_) == {"start.html", wheel} | own
    linked = re.findall(r'<a href="([^"]*)"', start)
    assert {link for link in linked if "://" not in link} == own


@pytest.mark.parametrize(
    "wrong", ["{figure}`fig-none`", "{formula}`eq-none`", "{explore}`none`", "{glue:text}`no :: x`"]
)
def test_a_wrong_reference_is_named(wrong):
    with pytest.raises(LookupError, match="the course refers to"):
        quotes.fetched(wrong)


def test_a_panel_or_an_exercise_that_is_not_there_is_named():
    with pytest.raises(LookupError, match="no panel 9"):
        quotes.fetched("{figure}`fig-next :: step 9`")
    with pytest.raises(LookupError, match="no exercise"):
        sheets.exercise("none")


# Sheets


def test_sheets_ask_and_their_solutions_answer():
    made = all_sheets()
    for number in (1, 2, 3):
        problems, solutions = made[f"sheet-{number}"], made[f"sheet-{number}-solutions"]
        assert "Solution." not in problems and "check(" not in problems and "hint(" not in problems
        assert problems.count("<h3>") == problems.count('class="asked"')
        assert solutions.count("Solution.") == problems.count("<h3>")
    asked = [made[name].count('class="problem question"') for name in ("quiz", "quiz-solutions")]
    assert asked == [12, 12]
    assert sum(made[name].count('class="problem question"') for name in sheets.QUIZZES) == 12
    assert "☒" not in made["quiz"] and "☒" in made["quiz-solutions"]
    assert "eta 0.446" in made["sheet-2-solutions"] and "✓" not in made["sheet-2-solutions"]


def test_the_handout_tells_no_answer():
    """Neither the losses nor the curve that decks ask the room for."""
    assert not re.search(r"\d\.\d{3}", written("sheets/handout.md"))


def test_sheets_say_how_many_points_there_are():
    made = all_sheets()
    assert "of 60</p>" in made["exam"] and "of 12</p>" in made["quiz"]
    assert "of 2, and 2 for the bonus</p>" in made["sheet-1"]
    points = sum(sheets.exercise(name).points for name in ("dro-cox-valid", "who-effective-size"))
    assert f"of {points + 6}</p>" in made["sheet-3"]
    marks = re.findall(r"<li>(\d) for", made["sheet-3-solutions"])
    assert sum(map(int, marks)) == 6


OTHER = """
title = "Second exam"
[patients]
month = [1, 4, 6, 7, 10, 15]
died = [1, 1, 0, 1, 0, 1]
feature = [0, 2, 1, -1, 1, 0]
[asked]
dies_instead = "E"
changed = "B"
[step]
patients = 900
alpha = 0.5
[ball]
alpha = 0.1
[weights]
alpha = 0.4
"""


def test_another_exam_is_computed_from_other_numbers(tmp_path):
    """Its answers, once more by the library."""
    path = tmp_path / "second.toml"
    path.write_text(OTHER, encoding="utf8")
    given = exams.read(path)
    time, died, x = (np.array(given["patients"][k], float) for k in ("month", "died", "feature"))
    values = exams.computed(given)
    event = (died == 1) | (time == 10)
    steps = np.cumprod([1 - 1 / (time >= t).sum() for t in time[event]])
    assert re.findall(r"= (0\.\d{3})", values["km"]) == [f"{s:.3f}" for s in steps[:-1]]
    losses = drocox.cox_losses(torch.tensor(np.log(2) * x), time, died == 1)
    doubled = torch.tensor(np.log(2) * (x + (np.arange(6) == 1)))
    for name, scores in (("losses_changed", doubled), ("losses_equal", 0 * doubled)):
        right = drocox.cox_losses(scores, time, died == 1).numpy()[[0, 1, 3]]
        assert re.findall(r"= (\d\.\d{3})", values[name]) == [f"{loss:.3f}" for loss in right]
    q = drocox.worst_case_weights(losses, 0.4).numpy()
    shares = [float(share) for share in re.findall(r"\w (0\.\d{3})", values["weights"])]
    np.testing.assert_allclose(sorted(shares), sorted(q[q > 0]), atol=2e-3)
    risk = float(drocox.dro_risk(losses, 0.4))
    assert float(values["weights_risk"]) == pytest.approx(risk, abs=2e-3)
    assert values["step_paper_square"] == "3" and values["step_paper"] == "300"
    page, answers = sheets.exam(False, given), sheets.exam(True, given)
    assert "{=" not in page + answers and "Second exam" in page
    assert values["weights_eta"] in page and values["weights"].split()[1] not in page


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ('"E"', '"A"', "who left"),
        ('changed = "B"', 'changed = "C"', "five who died"),
        ("[1, 4,", "[4, 4,", "six different ones"),
        ("[1, 4,", "[4,", "month: six numbers"),
        ("[1, 1, 0,", "[1, 1, 1,", "two of the first five left"),
        ("[0, 2,", '["0", 2,', "feature: six numbers"),
        ("alpha = 0.5", "alpha = 1.4", r"\[step\] alpha: a share"),
        ("alpha = 0.1", "alpha = -2", r"\[ball\] alpha: a share"),
        ("alpha = 0.4", "alpha = 0.01", "two to four"),
        ("patients = 900", "patients = 0.5", "a whole number"),
        ('title = "Second exam"', "", "title is missing"),
        ("[ball]\nalpha = 0.1", "", r"\[ball\] alpha is missing"),
        ("[ball]", "[ball", "second.toml: "),
    ],
)
def test_numbers_that_make_no_exam_are_refused_in_one_line(
    right, wrong, says, tmp_path, monkeypatch
):
    path = tmp_path / "second.toml"
    path.write_text(OTHER.replace(right, wrong), encoding="utf8")
    monkeypatch.setattr(course, "ROOT", tmp_path)
    (tmp_path / "_build" / "html" / "course").mkdir(parents=True)
    with pytest.raises(SystemExit, match=says) as stopped:
        course.write_exam(path)
    assert "\n" not in str(stopped.value)
    assert not list(tmp_path.rglob("*.html"))


# Moodle


def moodle(text):
    """Questions as Moodle's qformat_gift reads them: name, text, answers with what is said."""
    found = []
    for block in re.split(r"\n\s*\n", text.strip()):
        if block.startswith("$CATEGORY: "):
            continue
        for count, sign in enumerate(":#={}~"):
            block = block.replace("\\\\", "\0").replace(f"\\{sign}", chr(0xE000 + count))
            block = block.replace("\0", "\\\\")
        block = block.replace("\\\\", "\\")
        name, rest = re.fullmatch(r"::(.*?)::\[html\](.*)", block, re.DOTALL).groups()
        asked, _, answers = rest.partition("{")
        parts = re.findall(r"([=~])([^=~}]*)", answers)
        back = str.maketrans({chr(0xE000 + k): sign for k, sign in enumerate(":#={}~")})
        parts = [
            (mark, *(p.strip().translate(back) for p in part.split("#"))) for mark, part in parts
        ]
        found.append(
            (name.translate(back), asked.translate(back).strip(), parts, answers[:1] == "#")
        )
    return found


def test_moodle_reads_the_quizzes_as_they_are_meant():
    for name in sheets.QUIZZES:
        found = re.findall(r"^\{quiz\}`([\w-]+) (\d)`$", sheets.sheet_source(name), re.MULTILINE)
        questions = [quiz(chapter)[int(place) - 1] for chapter, place in found]
        read = moodle(course.for_moodle(name))
        assert len(read) == len(questions) == 4
        for question_, (title, text, parts, numeric) in zip(questions, read, strict=True):
            assert title == question_.name
            # each question stands by itself: what is given, then what is asked
            assert ("<table>" in text) == (numeric and name == "quiz-1")
            assert ("Symbols." in text) == (name != "quiz-1")
            tex = re.findall(r"\$(.*?)\$", question_.text)
            shown = [html.unescape(part) for part in re.findall(r"\\\((.*?)\\\)", text)]
            assert shown[len(shown) - len(tex) :] == tex
            if numeric:
                (_, answer, *_), *wrong = parts
                right, off = map(float, answer.split(":"))
                assert right == pytest.approx(question_.right, rel=1e-5) and 0 < off < 0.01
                assert [html.unescape(part[2]) for part in wrong] == list(question_.shows.values())
                known = [float(part[1].removeprefix("%0%").split(":")[0]) for part in wrong]
                assert known and min(abs(value - right) for value in known) > 2 * off
                continue
            marks_ = [part[0] for part in parts]
            assert marks_.index("=") == list(question_.choices).index(question_.right)
            assert marks_.count("=") == 1 and len(parts) == len(question_.choices)
            said = [part[2] for part in parts if part[0] == "~"]
            assert [html.unescape(words) for words in said] == list(question_.shows.values())


def test_the_exam_has_eight_questions_and_its_answers_stand_apart():
    text = written("sheets/exam.md")
    asked = list(sheets.QUESTION.finditer(text))
    assert len(asked) == 8 == text.count("\n## ")
    assert sum(int(question["points"]) for question in asked) == 60
    assert "Cauchy" not in sheets.exam() and "Cauchy" in sheets.exam(solved=True)
    assert sheets.exam(solved=True).count('class="marks"') == 8


@pytest.mark.parametrize("number", [1, 2, 3])
def test_deck_sheet_notebook_and_syllabus_have_the_same_homework(number):
    homework = written("syllabus.md").partition("## Reading and homework")[2]
    row = re.search(rf"^\| {number}\. .*$", homework, re.MULTILINE)[0]
    homework = re.findall(r"`([a-z-]+)`", row.split(" | ")[-1])
    for name in (f"sheets/sheet-{number}.md", f"notebooks/session-{number}.md"):
        assert re.findall(r"\{exercise\}`([\w-]+)`", written(name)) == homework


def test_solutions_print_answers_that_the_checks_call_right():
    said = 0
    for page in sheets.with_exercises():
        for one in sheets.exercises(page):
            answer = sheets.right_answer(one.words)
            if not answer:
                continue
            said += 1
            name = sheets.CHECKED.search(one.words)[1]
            values = [
                part if part.isalpha() else float(part.replace("−", "-"))
                for part in answer.replace("True", "1").replace("False", "0").split(", ")
            ]
            if isinstance(values[0], str):
                assert check(name, "".join(values))
            else:
                assert check(name, values if question(name).labels else values[0]), name
    assert said >= 30


@BROWSER
@pytest.mark.slow
def test_handout_and_quizzes_are_one_page_and_a_sheet_one_leaf(chromium, site):
    sizes = {}
    page = chromium.new_page()
    margin = dict.fromkeys(("top", "bottom", "left", "right"), "15mm")
    for name in ("handout", *sheets.QUIZZES, "sheet-1", "sheet-2", "sheet-3"):
        page.goto(f"{site}course/{name}.html")
        for paper in ("A4", "Letter"):
            pdf = page.pdf(format=paper, margin=margin)
            sizes[name, paper] = len(PdfReader(io.BytesIO(pdf)).pages)
    wanted = {(name, paper): 2 if name.startswith("sheet") else 1 for name, paper in sizes}
    assert sizes == wanted


# Notebooks


RIGHT_WEIGHTS = """\
import numpy as np

def worst_weights(losses, eta):
    excess = np.maximum(losses - eta, 0)
    return excess / excess.sum()
"""


@pytest.fixture(scope="module")
def student():
    return notebooks.student(DUAL)


def marks(notebook):
    """``{grade_id: (cell, what nbgrader reads)}``"""
    cells = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    found = {cell.metadata["nbgrader"]["grade_id"]: cell for cell in cells}
    assert len(found) == len(cells)  # ids are unique
    return {name: (cell, cell.metadata["nbgrader"]) for name, cell in found.items()}


def test_the_student_gets_stubs_and_no_solution(student):
    nbformat.validate(student)
    text = "\n".join(cell.source for cell in student.cells)
    assert "Solution" not in text
    solutions = "".join(f[0] for f in notebooks.SOLUTION.finditer(DUAL.read_text(encoding="utf8")))
    lines = {line for line in solutions.splitlines() if line.startswith("    return ")}
    assert lines and not lines & set(text.splitlines())
    assert all(not cell.get("outputs") for cell in student.cells)


def test_every_exercise_can_be_graded(student):
    titles = [t for cell in student.cells if (t := sheets.EXERCISE.match(cell.source))]
    found = marks(student)
    graded = [mark for _, mark in found.values() if mark["grade"]]
    assert [mark["points"] for mark in graded] == [title[2].count("★") for title in titles]
    # nbgrader's rules: words are graded and written in one cell, code in two
    flags = {"stub": (False, True, False), "check": (True, False, True)}
    flags |= {"code": flags["stub"], "answer": (True, True, False)}
    for name, (cell, mark) in found.items():
        kind = name.partition("-")[0]
        assert mark["schema_version"] == 3
        assert (mark["grade"], mark["solution"], mark["locked"]) == flags[kind]
        assert cell.cell_type == ("markdown" if kind == "answer" else "code")
    assert "code-ex-dual-code" in found  # an exercise in code without a check


def test_no_code_of_a_student_needs_a_solution():
    for page in sheets.with_exercises():
        cells = notebooks.student(page).cells
        first = next(i for i, cell in enumerate(cells) if sheets.EXERCISE.match(cell.source))
        left = [cell for cell in cells[first:] if cell.cell_type == "code"]
        assert all({"stub", "graded"} & set(cell.metadata.get("tags", [])) for cell in left), page


def test_an_open_stub_fails_its_graded_cell_and_a_right_answer_passes(student):
    found = marks(student)
    checks = [name.removeprefix("check-") for name in found if name.startswith("check-")]
    assert len(checks) >= 3
    for name in checks:
        space = {"check": lambda *answer: True}  # a student's own check does not count
        exec(found[f"stub-{name}"][0].source, space)
        with pytest.raises(AssertionError, match=name):
            exec(found[f"check-{name}"][0].source, space)
    space = {}
    exec(RIGHT_WEIGHTS, space)
    exec(found["check-dual-weights"][0].source, space)


def code_of(notebook):
    """The code of a notebook but for graded cells, which are to fail until there are answers."""
    cells = twins.code_cells(notebook)[1:]
    return "\n".join(c.source for c in cells if "graded" not in c.metadata.get("tags", []))


@pytest.mark.parametrize("name", ["session-1", "session-2"])
def test_the_first_sessions_run_without_torch(name, tmp_path):
    absent = ("torch", "numba", "scipy", "matplotlib", "sklearn", "sksurv", "lifelines")
    start = f"import sys\nsys.modules.update(dict.fromkeys({absent}))\n"
    (tmp_path / "run.py").write_text(start + code_of(notebooks.session(name)), encoding="utf8")
    done = subprocess.run(
        [sys.executable, "run.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "needed", "wheel", "commands"),
    [
        ("session-1", "drocox_absent", True, ["numpy pandas", '--no-deps "drocox-9.whl"']),
        ("session-3", "drocox torch_absent", True, ['"drocox-9.whl[torch]"']),
        ("cox-loss", "lifelines_absent", True, ['"drocox-9.whl[notebooks]"']),
        ("cox-loss", "a_folder", False, ['"drocox[notebooks] @ git+https://github.com/']),
    ],
)
def test_what_is_missing_is_installed_in_view_and_else_named(
    name, needed, wheel, commands, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    if wheel:
        (tmp_path / "drocox-9.whl").touch()
    (tmp_path / "a_folder").mkdir()
    notebook = (
        notebooks.session(name) if name in notebooks.SESSIONS else notebooks.student(COX_LOSS)
    )
    code = re.sub(r'"[\w ]*"(?=\.split)', f'"{needed}"', notebook.cells[0].source)
    shell = InteractiveShell()
    ran = []
    shell.register_magic_function(ran.append, magic_name="pip")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        result = shell.run_cell(code)
    assert f"Missing: {needed.split()[-1]}" in printed.getvalue()
    assert "Still missing" in str(result.error_in_exec)
    assert all(line.startswith(f"install {w}") for line, w in zip(ran, commands, strict=True))


def executed(notebook, absent):
    """The notebook as nbgrader runs it, every cell, where a package is missing."""
    notebook = copy.deepcopy(notebook)
    install = notebook.cells[0]
    install.source = re.sub(r"%pip.*", "pass", install.source).replace("find_spec(name)", "object")
    block = f"import sys\nsys.modules[{absent!r}] = None"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(block))
    NotebookClient(notebook, allow_errors=True, timeout=120, kernel_name="python3").execute()
    return {
        name: any(output.output_type == "error" for output in cell.outputs)
        for name, (cell, _) in marks(notebook).items()
        if name.startswith("check-")
    }


def test_an_empty_answer_gets_no_points_where_the_package_is_missing(student):
    """nbgrader gives the points of a graded cell unless it has an error."""
    failed = executed(student, "drocox")
    assert len(failed) >= 3 and all(failed.values())


def test_marks_without_torch_are_those_with_it(student):
    """One answer right, one wrong, one left empty."""
    notebook = copy.deepcopy(student)
    found = marks(notebook)
    found["stub-dual-weights"][0].source = RIGHT_WEIGHTS
    found["stub-dual-by-hand"][0].source = "answer = 0.5"
    assert executed(notebook, "torch") == {
        "check-dual-weights": False,
        "check-dual-by-hand": True,
        "check-dual-eta": True,
    }


@pytest.mark.parametrize("name", ["session-1", "session-2"])
def test_a_session_prints_what_it_printed(name):
    """If a change is meant: python book/_ext/course.py prints."""
    assert notebooks.prints(name) == written(f"notebooks/{name}.txt")


@pytest.mark.slow
def test_the_third_session_prints_what_it_printed():
    assert notebooks.prints("session-3") == written("notebooks/session-3.txt")


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1, 0.15, 1 / 6, 0.3, 0.5, 2 / 3, 0.99, 1])
def test_the_second_session_runs_for_every_share(alpha):
    code = code_of(notebooks.session("session-2"))
    assert code.count("\nalpha = ") == 2
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(re.sub(r"(?m)^alpha = .*$", f"alpha = {alpha}", code), {})
    plt.close("all")
    assert "nan" not in printed.getvalue() and "inf" not in printed.getvalue()


def test_what_the_second_session_shows_is_no_answer_to_its_homework():
    space = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code_of(notebooks.session("session-2")), space)
    functions = [value for value in space.values() if inspect.isfunction(value)]
    own = [value for value in functions if value.__module__ != "drocox.exercises._core"]
    assert own and not any(check("dual-eta", function) for function in own)


def test_the_first_cell_changes_nothing_where_all_is_installed():
    shell = InteractiveShell()
    assert shell.run_cell(notebooks.session("session-1").cells[0].source).success
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert not shell.run_cell("nothing_of_this_name").success
    assert "NameError" in printed.getvalue()


def test_links_between_notebooks_lead_somewhere(student):
    known = {page.stem for page in sheets.with_exercises()}
    assert twins.dumps(student) == twins.dumps(notebooks.student(DUAL))
    for cell in student.cells:
        if cell.cell_type == "markdown":
            for link in re.findall(r"\]\((?!https?:|#|attachment:)([^)\s]+)\)", cell.source):
                folder, name = re.fullmatch(r"\.\./([\w-]+)/([\w-]+)\.ipynb.*", link).groups()
                assert folder == name and name in known


# The pages for lecturers


@pytest.mark.slow
def test_pages_link_to_files_of_the_course_that_are_there(built):
    linked = set()
    for name in ("teach-tomorrow", "instructors-guide"):
        linked |= set(re.findall(r"\(course:([^)]*)\)", written(f"{name}.md")))
        html = (built / "book" / "teaching" / f"{name}.html").read_text(encoding="utf8")
        assert 'href="../../course/' in html and "course:" not in html
        assert "&amp;amp;" not in html  # the rest of such an address is lost
    assert linked
    assert [file for file in linked if not (built / "course" / file).exists()] == []
    tomorrow = written("teach-tomorrow.md")
    assert "solutions" not in "".join(re.findall(r"\(course:([^)]*)\)", tomorrow))


def test_the_guide_names_exercises_that_exist():
    named = set(re.findall(r"(?<!\})`([a-z]+(?:-[a-z]+)+)`", written("instructors-guide.md")))
    assert named and named <= set(names())


def test_the_paper_on_the_course_cites_what_it_lists_and_counts_right():
    text = written("jose/paper.md")
    listed = re.findall(r"^@\w+\{(\w+),", written("jose/paper.bib"), re.MULTILINE)
    assert set(re.findall(r"@([a-z]+\d{4}[a-z]+)", text)) == set(listed)
    data_sets = quotes.fetched("{glue:text}`verdict/should-you-use-it :: many-data-sets`")
    assert f"on {data_sets} data sets" in text
    exercises = sum(page.read_text("utf8").count("{exercise-start}") for page in plain.pages())
    assert 90 <= exercises <= 120  # "about a hundred"
