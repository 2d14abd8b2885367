"""The quizzes of parts I and II: what they call right is right, by code apart from theirs."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sksurv.nonparametric import kaplan_meier_estimator

import drocox
from drocox.exercises import check, names, question, quiz
from drocox.exercises.quizzes import quizzes

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import plain  # noqa: E402

QUESTIONS = [asked for chapter in quizzes() for asked in quiz(chapter)]
CHOICES = [asked for asked in QUESTIONS if asked.choices]
NUMBERS = [asked for asked in QUESTIONS if not asked.choices]
TIME = np.array([2.0, 3, 5, 8, 9, 12])
EVENT = np.array([True, False, True, True, False, True])
HAZARDS = np.array([4.0, 2, 1, 2, 0.5, 0.5])


def losses(scores, time=TIME, event=EVENT):
    return drocox.cox_losses(torch.as_tensor(scores), time, event).numpy()


def right():
    """What the package computes, where the answer is not a matter of pencil and paper."""
    zero = torch.zeros(6, dtype=torch.float64)
    c_leaves = EVENT & (np.arange(6) != 2)
    riskier = np.where(np.arange(6) == 4, 2.0, HAZARDS)  # E
    scores = torch.log(torch.tensor(HAZARDS))
    two = torch.log(torch.tensor([3.0, 1], dtype=torch.float64)).requires_grad_()
    drocox.regularizers.individual_keya(two.exp(), np.eye(2), 0.0).backward()
    b = np.arange(6) % 2 == 1
    return {
        "quiz-survival-data-2": kaplan_meier_estimator(c_leaves, TIME)[1][3],
        "quiz-cox-loss-2": losses(np.log(riskier))[3],
        "quiz-deep-cox-2": np.exp(-1),
        "quiz-survival-curves-2": drocox.breslow_survival(scores, TIME, EVENT, scores, [2.0])[0, 0],
        "quiz-fairness-metrics-2": 1.75,
        "quiz-fair-baselines-3": two.grad.sum(),
        "quiz-worst-case-2": drocox.dual_constant(0.08, rule="sharp") ** 2 - 1,
        "quiz-dual-3": 25,
        "quiz-who-gets-the-weight-2": 6000 / drocox.dual_constant(0.5, rule="paper") ** 2,
        "quiz-dro-cox-2": losses(zero)[3] - losses(zero[b], TIME[b], EVENT[b])[1],
        "quiz-split-2": drocox.split_cox_losses(zero, TIME, EVENT, np.arange(6) < 2)[0],
        "quiz-split-training-1": np.log(0.1),
    }


RIGHT = {name: float(value) for name, value in right().items()}


def ids(questions):
    return [asked.name for asked in questions]


def test_every_chapter_of_parts_one_and_two_has_a_quiz():
    text = (ROOT / "_toc.yml").read_text(encoding="utf8")
    chapters = []
    for part in ("Part I: Foundations", "Part II: The method"):
        section = text.partition(part)[2].partition("caption")[0]
        chapters += re.findall(r"file: (\S+)", section)
    assert chapters
    for chapter in chapters:
        source = (ROOT / f"{chapter}.md").read_text(encoding="utf8")
        (shown,) = re.findall(r"^## Quiz\n\n```\{quiz\} (\S+)\n```$", source, re.MULTILINE)
        assert shown == Path(chapter).name
        assert quiz(shown)
    assert not [name for name in names() if name.startswith("quiz-")]


@pytest.mark.parametrize("asked", CHOICES, ids=ids(CHOICES))
def test_every_choice_is_explained(asked):
    assert set(asked.shows) == set(asked.choices) - {asked.right}
    for letter in asked.choices:
        verdict = check(asked.name, f"({letter.upper()})")
        assert bool(verdict) == (letter == asked.right)
        assert verdict.text.endswith(asked.shows.get(letter, "right"))
    assert "got 2" in check(asked.name, "ab").text
    assert "the letters are a, b" in check(asked.name, "x").text
    assert "got float" in check(asked.name, 1.0).text


@pytest.mark.parametrize("asked", NUMBERS, ids=ids(NUMBERS))
def test_a_number_is_right_and_its_mistakes_are_known(asked):
    assert check(asked.name, RIGHT[asked.name])
    for value, says in asked.shows.items():
        verdict = check(asked.name, float(value))
        assert not verdict and verdict.text == f"✗ {asked.name}: {says}"
    assert "one of the mistakes we anticipated" in check(asked.name, 1.2345e6).text


def shown(text):
    """About what is seen of a text: a sign of a formula, not its name."""
    text = re.sub(r"\\(mathrm|frac)", "", text)
    return re.sub(r"[${}^_]", "", re.sub(r"\\[a-z]+", "x", text))


IN_COURSE = [
    asked
    for kind, chapter, place in re.findall(
        r"^\{(quiz)\}`([\w-]+) (\d)`$",
        (ROOT / "book/teaching/sheets/quiz.md").read_text(encoding="utf8"),
        re.MULTILINE,
    )
    if (asked := quiz(chapter)[int(place) - 1]).choices
]


@pytest.mark.parametrize("quizzes", [CHOICES, IN_COURSE], ids=["book", "course"])
def test_no_rule_of_thumb_passes_a_quiz(quizzes):
    """Such as to tick the first choice, the longest or the shortest."""
    assert len(quizzes) >= 9
    rules = dict.fromkeys(["first", "last", "longest", "shortest"], 0)
    for asked in quizzes:
        lengths = {letter: len(shown(words)) for letter, words in asked.choices.items()}
        ordered = sorted(lengths, key=lengths.get)
        ticked = min(lengths), max(lengths), ordered[-1], ordered[0]
        for rule, letter in zip(rules, ticked, strict=True):
            rules[rule] += letter == asked.right
        assert lengths[asked.right] <= 1.1 * max(lengths[k] for k in asked.shows), asked.name
    assert max(rules.values()) <= 0.45 * len(quizzes), rules
    assert min(rules["longest"], rules["shortest"]) >= 0.15 * len(quizzes), rules


@pytest.mark.parametrize("asked", QUESTIONS, ids=ids(QUESTIONS))
def test_questions_and_explanations_do_not_contain_the_answer(asked):
    data = question(asked.name).data()
    assert [case["says"] for case in data["cases"]].count("right") == 1
    if not asked.choices:
        told = " ".join([asked.text, *asked.shows.values()])
        found = np.array(re.findall(r"(?<![\d.,])\d+\.?\d*", told), float)
        told_it = np.isclose(found, RIGHT[asked.name], rtol=1e-3).any()
        assert not told_it or RIGHT[asked.name] == pytest.approx(1)


def right_choice(name):
    (asked,) = [asked for asked in QUESTIONS if asked.name == name]
    return asked.choices[asked.right]


def test_right_choices_about_the_cox_loss_are_true():
    scores = np.log(HAZARDS)
    np.testing.assert_allclose(losses(scores + 5), losses(scores), atol=1e-12)
    assert "Not one of them changes" in right_choice("quiz-cox-loss-3")
    # B is censored: a step against the gradient lowers the score, though the own loss is 0.
    f = torch.tensor(scores, requires_grad=True)
    drocox.cox_losses(f, TIME, EVENT).sum().backward()
    assert f.grad[1] > 0 and losses(scores)[1] == 0
    assert "lowers" in right_choice("quiz-cox-loss-4")
    # Twice as many patients of the same kind.
    twice = losses(np.zeros(200), np.tile(np.arange(100.0), 2), np.ones(200, bool))
    once = losses(np.zeros(100), np.arange(100.0), np.ones(100, bool))
    assert twice.mean() - once.mean() == pytest.approx(np.log(2), abs=1e-9)
    assert "$\\log 2$" in right_choice("quiz-dro-cox-3")


def test_right_choices_about_curves_and_metrics_are_true():
    scores = np.log(HAZARDS)
    at = [2.0, 5, 8]

    def curves(f):
        return drocox.breslow_survival(torch.tensor(f), TIME, EVENT, torch.tensor(f), at).numpy()

    np.testing.assert_allclose(curves(scores - 3), curves(scores), atol=1e-12)
    assert right_choice("quiz-survival-curves-4") == "Nothing."
    centred = scores - scores.mean()
    X = np.eye(6)
    fair = [drocox.fairness.individual(np.exp(s * centred), X) for s in (1, 0.5)]
    assert fair[1] < fair[0]
    ranks = [drocox.accuracy.concordance_index(s * centred, TIME, EVENT) for s in (1, 0.5)]
    assert ranks[0] == ranks[1]
    assert right_choice("quiz-fairness-metrics-1") == "$F_I$ falls and the c-index stays."
    moved = [drocox.fairness.individual(np.exp(centred - c), X) for c in (0, np.log(2))]
    assert moved[1] < 0.51 * moved[0]


def test_a_perfect_model_has_imparity_if_follow_up_differs():
    rng = np.random.default_rng(0)
    n = 6000
    scores = 1.5 * rng.normal(size=n)
    group = rng.integers(0, 2, n)
    life = rng.exponential(np.exp(-scores))
    leaves = rng.exponential(np.where(group == 1, 0.05, 50.0))
    time, event = np.minimum(life, leaves), life <= leaves
    unequal = drocox.fairness.concordance_imparity(scores, time, event, group)
    equal = drocox.fairness.concordance_imparity(scores, life, np.ones(n, bool), group)
    assert unequal > 2 > equal
    assert right_choice("quiz-fairness-metrics-4").startswith("Above 0")


def test_right_choices_about_the_worst_case_are_true():
    some = torch.tensor([0.1, 2.0, 0.7, 1.5, 0.0, 0.0, 3.1, 0.2], dtype=torch.float64)
    q = drocox.worst_case_weights(some, 0.5, rule="sharp")
    doubled = drocox.worst_case_weights(2 * some, 0.5, rule="sharp")
    torch.testing.assert_close(doubled, q)
    assert right_choice("quiz-dual-1") == "They stay the same."
    c = drocox.dual_constant(0.5, rule="sharp")
    eta = drocox.optimal_eta(some, c).item()
    assert not q[some < eta].any() and (q[some > eta] > 0).all()
    assert right_choice("quiz-dual-2").startswith("A threshold")

    def slope_in_losses(at):
        excess = np.maximum(some.numpy() - at, 0)
        return (c * excess / np.sqrt(len(some) * (excess**2).sum())).sum()

    assert slope_in_losses(eta + 0.3) < 1 < slope_in_losses(eta - 0.3)
    assert right_choice("quiz-dual-4") == "Less than 1."
    for alpha in (0.1, 0.3, 0.5):  # the effective size is n/c², whatever the losses are
        c2 = drocox.dual_constant(alpha, rule="paper") ** 2
        for seed in range(3):
            drawn = torch.tensor(np.random.default_rng(seed).exponential(size=4000))
            weights = drocox.worst_case_weights(drawn, alpha, rule="paper")
            assert float(1 / (weights**2).sum()) == pytest.approx(4000 / c2, rel=1e-6)
            assert (weights > 0).sum() >= 4000 / c2
    assert "alone" in right_choice("quiz-who-gets-the-weight-1")
    assert (1 / 0.8 - 1) ** 2 < 1 / 0.8 - 1 and (1 / 0.5 - 1) ** 2 == 1 / 0.5 - 1
    assert right_choice("quiz-worst-case-3").startswith("No")


def test_right_choices_about_splitting_are_true():
    first = np.array([True, False, True, False, True, False])
    split = drocox.split_cox_losses(torch.log(torch.tensor(HAZARDS)), TIME, EVENT, first).numpy()
    left = HAZARDS.copy()
    left[2] = 100.0  # C, of A's own half
    moved = drocox.split_cox_losses(torch.log(torch.tensor(left)), TIME, EVENT, first).numpy()
    assert moved[0] == pytest.approx(split[0], abs=1e-12)
    assert right_choice("quiz-split-1").startswith("Each is the same fixed function")
    late_first = np.argsort(-TIME)
    halves = np.arange(6) < 3
    scores = torch.log(torch.tensor(HAZARDS[late_first]))
    late = drocox.split_cox_losses(scores, TIME[late_first], EVENT[late_first], halves).numpy()
    assert not late[:3].any()
    assert right_choice("quiz-split-training-3").startswith("Nothing")


def test_the_plain_form_has_every_question_and_the_way_to_check_it():
    for chapter in quizzes():
        text = plain.quiz(chapter)
        assert 'check("quiz-' in text and "from drocox.exercises import check" in text
        for asked in quiz(chapter):
            assert asked.text in text and asked.name in text
            for choice in asked.choices.values():
                assert choice in text
            for says in asked.shows.values():
                assert says not in text


def test_an_unknown_chapter_is_refused():
    with pytest.raises(ValueError, match="those with a quiz: survival-data"):
        quiz("nowhere")
