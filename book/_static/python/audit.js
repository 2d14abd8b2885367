// The page "audit a file here": a form for `drocox audit`, which runs in a worker when its button was pressed.
(() => {
  const MOST_ROWS = 20000; // more take minutes; the command is faster
  const PACKAGES = ["numpy", "scipy", "pandas", "scikit-learn", "matplotlib"];
  const EXAMPLE = { time: "days", event: "died", prediction: "score", groups: ["sex"], cuts: "age>65" };
  const folder = new URL(".", document.currentScript.src);
  const form = document.getElementById("audit-here");
  const { start, source, example, file, choice, kind, prediction, horizon } = form.elements;
  const [bar, status, save, report] = ["progress", "[role=status]", ".save", "iframe"].map((part) => form.querySelector(part));
  let worker, name, rows;

  const answers = new Map();
  function ask(question, bytes = []) {
    const id = answers.size;
    worker.postMessage({ id, ...question }, bytes);
    return new Promise((resolve, reject) => answers.set(id, { resolve, reject }));
  }

  // Run a step with the form closed and the bar moving; an error is shown in its own words.
  async function step(words, action) {
    const say = (text, isError = false) => {
      status.textContent = text;
      status.classList.toggle("error", isError);
    };
    say(words);
    form.inert = true;
    bar.hidden = false;
    try {
      say(await action(say));
    } catch (error) {
      say(error.message, true);
    }
    form.inert = false;
    bar.hidden = true;
  }

  async function open(say) {
    try {
      worker = new Worker(new URL("worker.js", folder), { type: "module" });
      worker.onmessage = ({ data: { id, value, error, progress } }) => {
        if (progress) say(progress);
        else if (error) answers.get(id).reject(new Error(error));
        else answers.get(id).resolve(value);
      };
      const broken = new Promise((_, reject) => (worker.onerror = (event) => reject(new Error(event.message ?? "no worker"))));
      const code = await (await fetch(new URL("audit_here.py", folder))).text();
      await Promise.race([broken, ask({ packages: PACKAGES }).then(() => ask({ code }))]);
    } catch (error) {
      worker?.terminate();
      throw new Error(`Python could not be fetched and started (${error.message}). Check the connection to cdn.jsdelivr.net and try again.`);
    }
    start.hidden = true;
    source.hidden = false;
    return "Python is ready. From here on, nothing is asked of any server.";
  }

  async function result(question, bytes) {
    const found = JSON.parse(await ask(question, bytes));
    if (found.error) throw new Error(found.error);
    return found;
  }

  const options = (values) => values.map((value) => new Option(value));
  const picked = (group) => [...form.querySelectorAll(`[name=${group}]:checked`)].map((box) => box.value);

  async function read() {
    choice.hidden = save.hidden = report.hidden = true;
    const found = await result({ code: "columns(name)", names: { name } });
    rows = found.rows.toLocaleString("en");
    if (found.rows > MOST_ROWS) throw new Error(`${name} has ${rows} patients, and this page takes at most ${MOST_ROWS.toLocaleString("en")}. The command drocox audit has no such limit.`);
    for (const [field, values] of Object.entries({ time: found.columns, event: found.events, prediction: found.columns }))
      form.elements[field].replaceChildren(new Option("choose a column", ""), ...options(values));
    for (const list of form.querySelectorAll(".columns")) {
      list.replaceChildren(...found.columns.map((column) => {
        const label = document.createElement("label");
        const box = Object.assign(document.createElement("input"), { type: "checkbox", name: list.dataset.name, value: column });
        label.append(box, column);
        return label;
      }));
    }
    choice.hidden = false;
    return `${name}: ${rows} patients, ${found.columns.length} columns.`;
  }

  async function takeFile() {
    name = file.files[0].name;
    const bytes = await file.files[0].arrayBuffer();
    await ask({ code: "None", files: { [name]: bytes } }, [bytes]);
    return read();
  }

  async function takeExample() {
    form.reset(); // what was chosen for another file
    prediction.disabled = false;
    name = "patients.csv";
    await ask({ code: "example(name)", names: { name } });
    const words = await read();
    for (const [field, value] of Object.entries(EXAMPLE)) {
      if (Array.isArray(value)) form.querySelectorAll(`[name=${field}]`).forEach((box) => (box.checked = value.includes(box.value)));
      else form.elements[field].value = value;
    }
    return words;
  }

  function command() {
    const [flag, ...more] = kind.value.split(" ");
    const one = (option, value) => (value ? [option, value] : []);
    const given = form.elements;
    return [
      ...one("--time", given.time.value),
      ...one("--event", given.event.value),
      ...[...picked("groups"), given.cuts.value.trim()].flatMap((group) => one("--groups", group)),
      ...(flag ? [...one(flag, prediction.value), ...more] : []),
      ...picked("features").flatMap((column) => one("--features", column)),
      ...one("--horizon", horizon.value.trim()),
      ...one("--smallest", given.smallest.value.trim()),
      ...(given.missing.checked ? ["--missing", "drop"] : []),
    ];
  }

  async function audit() {
    save.hidden = report.hidden = true;
    const from = performance.now();
    const found = await result({ code: "report(name, arguments)", names: { name, arguments: command() } });
    URL.revokeObjectURL(save.href);
    Object.assign(save, { href: URL.createObjectURL(new Blob([found.page], { type: "text/html" })), download: found.name, hidden: false });
    report.srcdoc = found.page;
    report.hidden = false;
    return `The report of ${rows} patients is below, after ${((performance.now() - from) / 1000).toFixed(0)} seconds.`;
  }

  kind.addEventListener("change", () => (prediction.disabled = !kind.value));
  const fit = () => (report.style.height = `${(report.contentDocument?.documentElement.scrollHeight ?? 0) + 4}px`);
  report.addEventListener("load", fit);
  addEventListener("resize", fit);
  start.addEventListener("click", () => step("Fetching Python …", open));
  file.addEventListener("click", () => (file.value = "")); // the same name again is a new file
  file.addEventListener("change", () => step("Reading the file …", takeFile));
  example.addEventListener("click", () => step("Inventing patients …", takeExample));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    step(`Auditing ${rows} patients …`, audit);
  });
})();
