// Forms for exercises and quizzes. What is right, what is a known mistake and what is said of it comes from
// drocox.exercises as JSON (book/_ext/exercises.py); here the first case that fits an answer is looked up, nothing else.
(() => {
  const FUNCTIONS = new Map(Object.entries({ log: Math.log, ln: Math.log, exp: Math.exp, sqrt: Math.sqrt }));
  const CONSTANTS = new Map(Object.entries({ e: Math.E, pi: Math.PI }));
  const TOKEN = /\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([a-z]+)|([-+*/^()%]))/y;
  const THOUSANDS = /^[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?$/;
  const withPoint = (text) => text.replace(/(\d),(?=\d)/g, "$1."); // for a decimal comma

  // The value of an expression such as "5/6" or "-log(4)"; null if it is none.
  function evaluate(text) {
    let left = text.trim().toLowerCase().replaceAll("−", "-").replace(/[×·]/g, "*").replaceAll("**", "^");
    left = THOUSANDS.test(left) ? left.replaceAll(",", "") : withPoint(left);
    const tokens = [];
    TOKEN.lastIndex = 0;
    for (let place = 0; place < left.length; place = TOKEN.lastIndex) {
      const found = TOKEN.exec(left);
      if (!found) return null;
      tokens.push(found[0].trim());
    }
    let at = 0;
    const next = (symbol) => tokens[at] === symbol && ++at > 0;

    function atom() {
      const token = tokens[at++];
      if (token === "(") {
        const value = sum();
        if (!next(")")) throw new SyntaxError("no closing bracket");
        return value;
      }
      if (FUNCTIONS.has(token)) return FUNCTIONS.get(token)(atom()); // log 4 is log(4)
      if (CONSTANTS.has(token)) return CONSTANTS.get(token);
      if (token === undefined || !/^[\d.]/.test(token)) throw new SyntaxError("no number");
      return Number(token);
    }
    function signed() {
      if (next("-")) return -signed();
      if (next("+")) return signed();
      let base = atom();
      if (next("%")) base /= 100;
      return next("^") ? base ** signed() : base;
    }
    function product() {
      let value = signed();
      for (;;) {
        if (next("*")) value *= signed();
        else if (next("/")) value /= signed();
        else return value;
      }
    }
    function sum() {
      let value = product();
      for (;;) {
        if (next("+")) value += product();
        else if (next("-")) value -= product();
        else return value;
      }
    }
    try {
      const value = sum();
      return at === tokens.length ? value : null;
    } catch {
      return null;
    }
  }

  // What is said of numbers; drocox.exercises._answers.Question.grade does the same.
  function judge(question, numbers) {
    if (!numbers.every(Number.isFinite)) return question.notFinite;
    const near = (given, values) => values === null || values.some(([value, off]) => Math.abs(given - value) <= off);
    const fits = (found) => found.numbers.every((values, place) => near(numbers[place], values));
    return question.cases.find(fits)?.says ?? question.otherwise;
  }

  // What is said of the texts in fields.
  function judgeTexts(question, texts) {
    const given = texts.filter((text) => text.trim());
    if (!given.length) return question.noAnswer;
    const numbers = given.map(evaluate);
    if (numbers.includes(null)) return `${question.expected}, got text`;
    if (given.length < texts.length) return `${question.expected}, got ${given.length}`;
    const says = judge(question, numbers);
    if (says in question.marks) return says;
    // 1,386 is 1386, or else 1.386; 20 % is 0.2, or else 20 where percent were asked for
    const percent = (text) => (evaluate(text) >= 0.01 ? text.replace(/\s*%\s*$/, "") : text);
    for (const read of [withPoint, percent]) {
      const otherwise = given.map((text) => evaluate(read(text)));
      if (!otherwise.includes(null) && otherwise.some((value, place) => value !== numbers[place])) return judge(question, otherwise);
    }
    return says;
  }

  function make(tag, properties, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }

  // Fields for numbers: their elements, and what is said of what they hold.
  function numberFields(question) {
    const labels = question.labels.length ? question.labels : [""];
    const inputs = labels.map(() => make("input", { type: "text", autocomplete: "off", spellcheck: false, size: 9 }));
    const elements = labels.map((label, place) => (label ? make("label", {}, label, inputs[place]) : inputs[place]));
    if (!question.labels.length) inputs[0].setAttribute("aria-label", "Your answer");
    return { elements, inputs, verdict: () => judgeTexts(question, inputs.map((input) => input.value)) };
  }

  // Boxes to tick: any of them, or one of several choices, whose texts stand in the page.
  function boxes(question, texts) {
    const one = question.kind === "one";
    const type = one ? "radio" : "checkbox";
    const inputs = question.labels.map(() => make("input", { type, name: question.name }));
    const elements = question.labels.map((label, place) =>
      make("label", {}, inputs[place], make("span", {}, one ? `${label}. ` : label, ...(texts[place] ?? [])))
    );
    const verdict = () => {
      if (!one) return judge(question, inputs.map((input) => Number(input.checked)));
      const taken = inputs.findIndex((input) => input.checked);
      return taken < 0 ? question.noAnswer : judge(question, [taken]);
    };
    return { elements, inputs, verdict };
  }

  function helpText(question) {
    if (question.kind === "several") return "Tick all that apply.";
    if (question.kind === "one") return "";
    if (question.digits === null) return "Whole numbers.";
    return "Three significant digits, or an expression such as 5/6 or log(4). The log is the natural one.";
  }

  function hintButton(question, list) {
    const button = make("button", { type: "button", textContent: "Hint" });
    let shown = 0;
    button.addEventListener("click", () => {
      const more = question.hints.length - shown - 1;
      const text = `Hint ${shown + 1}${more ? ` (${more} more)` : ""}: ${question.hints[shown]}`;
      list.append(make("p", { textContent: text }));
      shown += 1;
      button.disabled = !more;
    });
    return button;
  }

  function form(place) {
    const question = JSON.parse(place.querySelector("script").textContent);
    const asked = place.closest(".quiz-question");
    const choices = [...(asked?.querySelectorAll(":scope > ol > li") ?? [])];
    const legend = make("legend", { textContent: asked ? "" : "Your answer" });
    if (asked) legend.append(...[...asked.querySelectorAll(":scope > p")].flatMap((p) => [...p.childNodes]));
    const texts = choices.map((item) => [...(item.querySelector("p") ?? item).childNodes]);
    const fields = question.kind === "numbers" ? numberFields(question) : boxes(question, texts);
    const help = make("small", { textContent: helpText(question), id: `help-${question.name}` });
    const verdict = make("p", { className: "verdict" });
    const hints = make("div", { className: "hints" });
    for (const live of [verdict, hints]) live.setAttribute("role", "status");
    const buttons = [make("button", { type: "submit", textContent: "Check" })];
    if (question.hints.length) buttons.push(hintButton(question, hints));
    const set = make("fieldset", {}, legend, make("div", { className: `fields ${question.kind}` }, ...fields.elements));
    if (help.textContent) {
      set.append(help);
      fields.inputs.forEach((input) => input.setAttribute("aria-describedby", help.id));
    }
    const result = make("form", { noValidate: true }, set, make("div", { className: "buttons" }, ...buttons), verdict, hints);
    result.addEventListener("submit", (event) => {
      event.preventDefault();
      const says = fields.verdict();
      const mark = question.marks[says] ?? question.cross;
      verdict.textContent = `${mark} ${says}`;
      verdict.dataset.mark = mark;
    });
    result.addEventListener("input", () => {
      verdict.textContent = "";
      delete verdict.dataset.mark;
    });
    asked?.querySelectorAll(":scope > p, :scope > ol").forEach((element) => element.remove());
    place.append(result);
    place.classList.add("ready");
  }

  function start() {
    document.querySelectorAll(".answer").forEach(form);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
