"""The forms in the page say what :func:`drocox.exercises.check` says, of every answer there is.

The forms are made from the same HTML that the book gets, on a small page, in headless Chromium.
"""

import functools
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from bs4 import BeautifulSoup
from pages import CHROMIUM

from drocox.exercises import check, hint, hints, names, question, quiz
from drocox.exercises._answers import COARSE, ROUNDED, UNKNOWN
from drocox.exercises.quizzes import quizzes

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import exercises  # noqa: E402

STATIC = ROOT / "book" / "_static"
QUIZ = [asked for chapter in quizzes() for asked in quiz(chapter)]
ASKED = [name for name in names() if question(name) is not None]
ALL = ASKED + [asked.name for asked in QUIZ]
# Fills in a form with answers in turn, by texts or by which boxes are ticked; what it says of each.
ANSWER = """([name, answers]) => {
  const form = [...document.querySelectorAll(".answer")].find((div) => div.dataset.name === name)
    .querySelector("form");
  const inputs = [...form.querySelectorAll("input")];
  return answers.map((answer) => {
    inputs.forEach((input, place) => {
      if (input.type === "text") input.value = answer[place] ?? "";
      else input.checked = Boolean(answer[place]);
    });
    form.requestSubmit();
    return form.querySelector(".verdict").textContent;
  });
}"""

EXPRESSIONS = {
    "5/6": 5 / 6,
    "-log(4)": -np.log(4),
    "ln(25)": np.log(25),
    "exp(-2)": np.exp(-2),
    "e^2": np.e**2,
    "2**3": 8,
    "-2^2": -4,
    "2^-1": 0.5,
    "2^3^2": 512,
    "(log(4) + log(2.5)) / 2": (np.log(4) + np.log(2.5)) / 2,
    "1 - 2 - 3": -4,
    "12/3/2": 2,
    "sqrt(2)": np.sqrt(2),
    "−0.5": -0.5,
    "3×4": 12,
    "1e-3": 1e-3,
    ".5": 0.5,
    "2.": 2,
    "2,000": 2000,
    "0,446": 0.446,
    "1,386": 1.386,
    "-12,5/2": -6.25,
    "2 * pi": 2 * np.pi,
    "ln 3": np.log(3),
    "log 4 / 2": np.log(4) / 2,
    "20.8 %": 0.208,
    "41.7%": 41.7,
}

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: no page was looked at"),
    pytest.mark.slow,
]


def field(name):
    return exercises.field_html(exercises.page_data(name))


def expression_field(text):
    """A field of which the right answer is the value of an expression."""
    data = exercises.page_data("log-rank-six") | {"name": text, "hints": []}
    data["cases"] = [{"says": "right", "numbers": [[[float(EXPRESSIONS[text]), 1e-9]]]}]
    return exercises.field_html(data)


def page_html():
    """All exercises and all quizzes on one page."""
    parts = []
    for name in ASKED:
        parts.append(f'<div class="exercise"><div class="cell tag_stub">check("{name}")</div>')
        parts.append(field(name) + "</div>")
    for asked in QUIZ:
        choices = "".join(f"<li><p>{text}</p></li>" for text in asked.choices.values())
        parts.append(f'<div class="quiz-question"><p><strong>1.</strong> {asked.text}</p>')
        parts.append(f"<ol>{choices}</ol>" if choices else "")
        parts.append(field(asked.name) + "</div>")
    parts += [expression_field(text) for text in EXPRESSIONS]
    style = (STATIC / "exercises.css").read_text(encoding="utf8")
    script = (STATIC / "exercises.js").read_text(encoding="utf8")
    body = "\n".join(parts)
    return f"""<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>All</title>
        <style>{style}</style></head><body><main>{body}</main><script>{script}</script>"""


@pytest.fixture(scope="module")
def page(chromium):
    trouble = []
    tab = chromium.new_page()
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    tab.set_content(page_html())
    # By which the tests find a form; the place of its data says the name as well.
    tab.evaluate("""() => document.querySelectorAll(".answer").forEach((div) => {
      div.dataset.name = JSON.parse(div.querySelector("script").textContent).name;
    })""")
    yield tab
    tab.close()
    assert not trouble


def said(name, answer):
    """What a notebook says, without the name, which a page does not repeat."""
    return check(name, answer).text.replace(f" {name}:", "", 1)


def texts(values):
    return [repr(float(value)) for value in np.atleast_1d(values)]


def vectors(asked):
    """Numbers that fit each case in turn, and some that fit none or are on the edge of one."""
    size = max(len(asked.labels), 1) if asked.kind != "one" else 1
    found = []
    for case in asked.cases:
        first = [values[0][0] if values else 0.123 for values in case.numbers]
        last = [values[-1][0] if values else 7.7 for values in case.numbers]
        found += [first, last]
        if asked.kind == "numbers":
            off = [values[0][0] + 0.9 * values[0][1] if values else 0.0 for values in case.numbers]
            far = [values[0][0] + 1.1 * values[0][1] if values else 0.0 for values in case.numbers]
            found += [off, far]
    if asked.kind == "numbers":
        found += [[1234.5] * size, [-0.5] * size, [1e-4] * size]
        right = [values[0][0] for values in asked.cases[0].numbers]
        for digits in (1, 2, 3, 4):
            found.append([float(f"{value:.{digits - 1}e}") for value in right])
    return found


@functools.cache
def answers(name):
    """Pairs of what is filled into the form and what is given to the check."""
    asked = question(name)
    if asked.kind == "one":
        pairs = []
        for place, letter in enumerate(asked.labels):
            pairs.append(([k == place for k in range(len(asked.labels))], letter))
        return [*pairs, ([], ...)]
    if asked.kind == "several":
        pairs = []
        for number in range(2 ** len(asked.labels)):
            ticked = [bool(number >> place & 1) for place in range(len(asked.labels))]
            taken = "".join(letter for letter, one in zip(asked.labels, ticked, strict=True) if one)
            pairs.append((ticked, taken if asked.letters else ticked))
        return pairs
    scalar = not asked.labels
    pairs = [(texts(v), v[0] if scalar else v) for v in vectors(asked)]
    size = max(len(asked.labels), 1)
    pairs += [
        ([], ...),
        (["soon"] * size, "soon"),
        (["1/0"] * size, np.inf if scalar else [np.inf] * size),
    ]
    if not scalar:
        pairs.append((["1"] * (size - 1), [1.0] * (size - 1)))
    return pairs


@pytest.mark.parametrize("name", ALL)
def test_the_page_says_what_the_notebook_says(page, name):
    given = answers(name)
    told = page.evaluate(ANSWER, [name, [filled for filled, _ in given]])
    assert told == [said(name, answer) for _, answer in given]
    cases = {case.says for case in question(name).cases}
    if question(name).kind == "several":  # with 0 and 1 alone every mistake is known
        cases = {says for says in cases if UNKNOWN not in says}
    cases -= {ROUNDED, COARSE}  # not every number can be rounded: test_exercises.py tries them
    assert {text[2:] for text in told} >= cases


def test_there_is_a_form_for_every_exercise_answered_by_numbers_or_letters(page):
    assert page.locator(".answer.ready form").count() == len(ALL) + len(EXPRESSIONS)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_have_their_value(page, text):
    assert page.evaluate(ANSWER, [text, [[text]]]) == ["✓ right"]


@pytest.mark.parametrize(
    "text", ["", "soon", "1 2", "1,2,3", "log", "%", "(1", "1)", "2 +", "constructor"]
)
def test_answers_that_are_not_numbers_are_text(page, text):
    (told,) = page.evaluate(ANSWER, ["log-rank-six", [[text]]])
    assert told == (said("log-rank-six", "soon") if text else said("log-rank-six", ...))


def form_of(page, name):
    return page.locator(f'.answer[data-name="{name}"] form')


def test_enter_checks_and_another_answer_takes_the_verdict_away(page):
    form = form_of(page, "log-rank-six")
    field = form.locator("input")
    field.fill("8/13")
    field.press("Enter")
    assert form.locator(".verdict").text_content() == "✓ right"
    field.fill("0.6")
    assert form.locator(".verdict").text_content() == ""
    form.locator("button[type=submit]").click()
    assert form.locator(".verdict").text_content().startswith("≈ one digit cannot tell")
    field.fill("0.62")
    field.press("Enter")
    assert form.locator(".verdict").text_content() == f"≈ {ROUNDED}"


@pytest.mark.parametrize("name", ["curves-weights", "dro-cox-valid"])
def test_the_button_gives_the_hints_one_after_the_other(page, name):
    form = form_of(page, name)
    button = form.locator("button[type=button]")
    for number in range(1, len(hints(name)) + 1):
        button.click()
        shown = form.locator(".hints p").all_text_contents()
        assert shown == [hint(name, k).text for k in range(1, number + 1)]
    assert button.is_disabled()


def test_forms_have_names_for_those_who_do_not_see_them(page):
    bad = page.evaluate("""() => [...document.querySelectorAll(".answer form")].filter((form) => {
      const inputs = [...form.querySelectorAll("input")];
      const named = inputs.every((input) => input.labels.length || input.ariaLabel);
      const live = form.querySelectorAll('[role="status"]').length === 2;
      return !named || !live || !form.querySelector("legend").textContent.trim();
    }).length""")
    assert bad == 0


def test_the_right_answer_stands_in_no_text_of_the_page(page):
    """Only in script elements, which no reader, screen reader or search shows."""
    shown = page.locator("main").inner_text()
    assert "Your answer" in shown and '"cases"' not in shown and '"says"' not in shown


def test_the_stub_makes_room_for_the_form(page):
    assert page.locator(".tag_stub:visible").count() == 0
    page.emulate_media(media="print")
    try:
        assert page.locator(".tag_stub:visible").count() == len(ASKED)
        assert page.locator("button:visible").count() == 0
        assert page.locator(".quiz-question legend:visible").count() == len(QUIZ)
    finally:
        page.emulate_media(media="screen")


def test_the_book_gets_the_quiz_and_fields_after_stubs(built):
    """What a page of the book holds is what the forms are made of."""
    page = (built / "book" / "method" / "dual.html").read_text(encoding="utf8")
    soup = BeautifulSoup(page, "html.parser")
    held = [json.loads(field.script.string) for field in soup.select(".answer")]
    told = [json.loads(json.dumps(exercises.page_data(data["name"]))) for data in held]
    assert held == told
    asked = [one.name for one in quiz("dual")]
    assert [data["name"] for data in held] == [*asked, "dual-by-hand"]  # a function has no field
    (field,) = soup.select(".tag_stub + .answer")
    assert field.script and "dual-by-hand" in field.find_previous_sibling().get_text()
    for box, one in zip(soup.select(".quiz-question"), quiz("dual"), strict=True):
        assert len(box.select("ol.loweralpha > li")) == len(one.choices)
    assert "notebook" in soup.select_one(".quiz noscript").get_text()
    assert soup.select('script[src*="exercises.js"]') and soup.select('[href*="exercises.css"]')
    index = (built / "searchindex.js").read_text(encoding="utf8")
    assert "threshold" in index and "noanswer" not in index.lower()  # choices are found, data not
