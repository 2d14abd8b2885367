// Python for a page, in a module worker: Pyodide's distribution with the book's own package. The page first posts
// {id, packages}, names of packages of the distribution, then any number of {id, code, names, files}: Python is run with
// these names, beside these files. Each is answered by {id, value} or {id, error}; while Python loads, {progress} tells how far.
const DISTRIBUTION = "https://cdn.jsdelivr.net/pyodide/v314.0.3/full/";
const OWN = "/lib/drocox"; // where the book's package and what it needs besides are unpacked

let python;

async function start(packages) {
  const tell = (progress) => postMessage({ progress });
  tell("Fetching Python …");
  const { loadPyodide } = await import(`${DISTRIBUTION}pyodide.mjs`);
  python = await loadPyodide({ indexURL: DISTRIBUTION, env: { HOME: "/home/pyodide", MPLBACKEND: "agg" } });
  tell(`Fetching ${packages.join(", ")} …`);
  const silent = () => {};
  const failed = [];
  await python.loadPackage(packages, { messageCallback: silent, errorCallback: (text) => failed.push(text) });
  if (failed.length) throw new Error(failed[0]);
  const own = await fetch(new URL("packages.zip", import.meta.url));
  if (!own.ok) throw new Error(`${own.url}: ${own.status}`);
  python.unpackArchive(await own.arrayBuffer(), "zip", { extractDir: OWN });
  tell("Starting Python …");
  python.runPython(`import sys; sys.path.insert(0, "${OWN}")`);
}

function run({ code, names = {}, files = {} }) {
  for (const [name, bytes] of Object.entries(files)) python.FS.writeFile(name, new Uint8Array(bytes));
  for (const [name, value] of Object.entries(names)) python.globals.set(name, python.toPy(value));
  return python.runPython(code);
}

// One message after another: each waits for what came before.
let before = Promise.resolve();
self.onmessage = ({ data }) => {
  before = before
    .then(() => (data.packages ? start(data.packages) : run(data)))
    .then((value) => postMessage({ id: data.id, value }))
    .catch((error) => postMessage({ id: data.id, error: error.message.trim().split("\n").pop() }));
};
