// The page: keys and clicks become requests, answers become cards. One request at a time changes something.

import { PointMap } from "./map.js";
import { NOBODY, dark, symbol } from "./palette.js";
import { $, make, number, percent, showCard, showClasses, showStop, showWhy } from "./panels.js";

const tab = Array.from(crypto.getRandomValues(new Uint8Array(6)), (byte) => byte.toString(16).padStart(2, "0")).join("");
let state = null, card = null, ahead = null, busy = false, closed = false, waiting = null;

const map = new PointMap($("map"), $("points"), $("overlay"), { pick: (row) => act({ do: "show", rows: [row] }), select, hover });

async function ask(path, body) {
  let answer;
  try {
    answer = await fetch(path, body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  } catch {
    if (!closed) fail("The studio does not answer. Labels up to the last one that was shown are saved; start it again.");
    return null;
  }
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({ error: "The studio has refused this." }));
  fail(`Not done: ${problem.error}`);
  return null;
}

async function act(body) {
  if (busy || closed) return null;
  busy = true;
  document.body.dataset.busy = "yes";
  try {
    const answer = await ask("act", { tab, ...body });
    if (!answer) return null;
    const found = await answer.json();
    ahead = found.ahead;
    $("error").hidden = true;
    state = found.state;
    card = found.card;
    render();
    if (card) why(card.row);
    return found;
  } finally {
    busy = false;
    document.body.dataset.busy = "no";
    const [key, row] = waiting ?? [];
    waiting = null;
    if (key !== undefined && card?.row === row) pressed(key);
  }
}

function render() {
  if (card && Number(document.body.dataset.row) === card.row && !card.check && card.label === null && $("row").dataset.row === String(card.row)) showClasses(card, state, pick);
  else if (card) showCard(card, state, pick);
  else nothingLeft();
  showStop(state, (row) => act({ do: "show", rows: [row] }));
  if (state.trouble) fail(state.trouble);
  point();
  legend();
  document.body.dataset.row = card ? card.row : "";
  document.body.dataset.labelled = state.labelled;
  document.body.dataset.check = card?.check ? "yes" : "no";
}

function point() {
  map.current = card ? card.row : -1;
  if (card?.check && map.bytes) { map.bytes[4 * card.row] = NOBODY; map.upload(true); }  // the map is blind too
  map.draw();
}

// The next card is here already, so it is shown while the label is on its way to the disk. If that fails, the card that
// was labelled comes back.
async function label_one(name) {
  const before = card;
  const body = { do: "label", rows: [before.row], label: name, check: Boolean(before.check) };
  if (ahead && ahead.row !== before.row && !busy) {
    body.next = ahead.row;
    card = ahead;
    showCard(card, state, pick);
    $("why").hidden = true;
    point();
    document.body.dataset.row = card.row;
  }
  const found = await act(body);
  if (!found && card !== before) { card = before; render(); }
}

function nothingLeft() {
  $("row").textContent = "Every row has a label.";
  $("kind").textContent = "";
  $("media").replaceChildren();
  $("text").hidden = true;
  $("cells").querySelector("tbody").replaceChildren();
  $("why").hidden = true;
  showClasses(null, state, pick);
}

async function why(row) {
  if (card.check || !state.classes.length) { $("why").hidden = true; return; }
  const answer = await fetch(`why/${row}`).catch(() => null);
  const reasons = answer?.ok ? await answer.json() : [];
  if (card?.row !== row) return;
  showWhy(reasons, state, (other) => act({ do: "show", rows: [other] }), card.image);
}

// What people do.

async function pick(name) {
  if (map.selected.size) return label([...map.selected], name);
  return card ? label_one(name) : null;
}

async function label(rows, name) {
  const found = await act({ do: "label", rows, label: name, ...(card ? { stay: card.row } : {}) });
  if (!found) return;
  const kept = rows.length - found.count;
  toast(`${number(found.count)} rows are ${name}${kept ? `; ${number(kept)} keep the label they had` : ""}. Backspace takes it back.`);
  select([]);
  if (card && card.label !== null) act({ do: "next" });
}

async function agree() {
  const many = map.selected.size > 0;
  if (!many && (!card || card.check || card.label !== null)) return;
  const rows = many ? [...map.selected] : [card.row];
  const found = await act({ do: "accept", rows, ...(many && card ? { stay: card.row } : {}) });
  if (!found) return;
  if (many) {
    toast(`${number(found.count)} rows confirmed. Backspace takes it back.`);
    select([]);
    if (card && card.label !== null) act({ do: "next" });
  }
}

async function undo() {
  const found = await act({ do: "undo", ...(card ? { stay: card.row } : {}) });
  if (!found) return;
  const what = found.undone;
  if (!what) toast("There is nothing to undo.");
  else if (what.count > 1) toast(`Taken back: ${number(what.count)} rows.`);
  else if (what.row === null) toast(`Taken back: ${what.action}.`);
}

async function save() {
  const answer = await ask("save", {});
  if (answer) toast((await answer.json()).sentence);
}

async function close() {
  const answer = await ask("close", {});
  if (!answer) return;
  closed = true;
  news?.close();
  const { sentence } = await answer.json();
  document.body.dataset.closed = "yes";
  $("dialog").close();
  toast(`The studio is closed. ${sentence}. You can close this tab.`, true);
}

function select(rows) {
  map.setSelected(rows);
  const box = $("selection");
  box.hidden = rows.length === 0;
  $("lasso").setAttribute("aria-pressed", "false");
  if (!rows.length) return;
  $("toast").hidden = true;
  const free = rows.filter((row) => map.bytes[4 * row + 2] === NOBODY).length;
  const sure = make("button", { textContent: "" });
  sure.append(make("kbd", { textContent: "enter" }), " Agree with each");
  sure.addEventListener("click", agree);
  const away = make("button", { textContent: "" });
  away.append(make("kbd", { textContent: "esc" }), " Let go");
  away.addEventListener("click", () => select([]));
  box.replaceChildren(make("span", { textContent: `${number(rows.length)} rows, ${number(free)} without a label: press the key of a class` }), ...(state?.classes.length ? [sure] : []), away);
}

function lasso() {
  select([]);
  map.setLasso(!map.lassoing);
  $("lasso").setAttribute("aria-pressed", map.lassoing);
  if (map.lassoing) toast("Draw around rows on the map. Esc ends it.");
}

// Dialogs.

function ask_for(title, body, { confirm = "OK", done = null, extra = [] } = {}) {
  const dialog = $("dialog"), form = dialog.querySelector("form");
  dialog.querySelector("h2").textContent = title;
  $("dialogBody").replaceChildren(...body);
  const menu = dialog.querySelector("menu");
  menu.replaceChildren(make("button", { type: "button", textContent: done ? "Cancel" : "Close" }), ...extra);
  menu.firstChild.addEventListener("click", () => dialog.close());
  if (done) menu.append(make("button", { type: "submit", textContent: confirm }));
  form.onsubmit = (event) => { event.preventDefault(); dialog.close(); done?.(); };
  dialog.showModal();
  const input = dialog.querySelector("input");
  if (input) { input.focus(); input.select(); }
  else menu.lastElementChild.focus();
}

function newClass(name = "") {
  const input = make("input", { value: name, maxLength: 100, ariaLabel: "Name of the class", autocomplete: "off" });
  const many = map.selected.size;
  const hint = many ? `${number(many)} selected rows become this class.` : card ? `Row ${number(card.row + 1)} becomes this class.` : "";
  ask_for("New class", [input, make("p", { className: "hint", textContent: hint })], { confirm: "Add and label", done: () => { if (input.value.trim()) pick(input.value); } });
}

function editClasses() {
  const fields = state.classes.map((one) => {
    const input = make("input", { value: one.name, maxLength: 100, ariaLabel: `New name of ${one.name}` });
    return [one.name, input, make("dt", {}, symbol(one.code)), make("dd", {}, input)];
  });
  const added = make("input", { placeholder: "One more class", maxLength: 100, ariaLabel: "One more class" });
  const list = make("dl", {}, ...fields.flatMap(([, , term, text]) => [term, text]), make("dt"), make("dd", {}, added));
  const hint = make("p", { className: "hint", textContent: "Two classes with one name become one. Backspace takes it back." });
  ask_for("Classes", [list, hint], { confirm: "Apply", done: async () => {
    const stay = card ? { stay: card.row } : {};
    if (added.value.trim()) await act({ do: "class", label: added.value, ...stay });
    for (const [name, input] of fields) {
      const other = input.value.trim();
      if (other && other !== name) await act({ do: "rename", label: name, other, ...stay });
    }
  } });
}

function findRow() {
  const input = make("input", { placeholder: "Number of a row, or words", ariaLabel: "Find", autocomplete: "off" });
  const hits = make("div", { className: "hits" });
  let rows = [];
  input.addEventListener("input", async () => {
    const words = input.value;
    const answer = await fetch(`find?q=${encodeURIComponent(words)}`);
    if (!answer.ok || words !== input.value) return;
    rows = await answer.json();
    hits.replaceChildren(...rows.map((one) => {
      const hit = make("button", { type: "button", className: "doubt", textContent: `Row ${number(one.row + 1)}  ${one.about}` });
      hit.addEventListener("click", () => { $("dialog").close(); act({ do: "show", rows: [one.row] }); });
      return hit;
    }));
  });
  const go = () => {
    const first = rows.length ? rows[0].row : /^\d+$/.test(input.value) ? Number(input.value) - 1 : null;
    if (first !== null) act({ do: "show", rows: [first] });
  };
  ask_for("Find a row", [input, hits], { confirm: "Show", done: go });
}

function help() {
  const keys = [["1 – 9, letters", "give the class that has this key, and go on"], ["space", "skip"], ["backspace", "take the last step back, again and again"], ["enter", "agree with what is most probable, for the row or for the selection"], ["n", "the next suggestion"], ["a", "a new class"], ["e", "add, rename and merge classes"], ["l", "lasso: draw around rows, then a key labels all of them"], ["v", "what the map shows: class, doubt, given, disagreement"], ["d", "the most doubtful of your labels"], ["delete", "take the label of this row away"], ["/", "find a row"], ["+  −  0", "nearer, farther, the whole map"], ["s", "save the table with its labels"], ["?", "this list"]];
  const list = (pairs) => make("dl", {}, ...pairs.flatMap(([key, text]) => [make("dt", {}, make("kbd", { textContent: key })), make("dd", { textContent: text })]));
  ask_for("Keys", [list(keys)]);
}

function confirmClose() {
  ask_for("Close the studio?", [make("p", { textContent: "The table with its labels is written, and the studio ends. Every label is on the disk already." })], { confirm: "Save and close", done: close });
}

// Keys.

const COMMANDS = {
  " ": () => card && act({ do: "skip", rows: [card.row] }),
  Backspace: undo,
  Enter: agree,
  Delete: () => card && card.label !== null && act({ do: "clear", rows: [card.row], stay: card.row }),
  Escape: () => { map.setLasso(false); $("lasso").setAttribute("aria-pressed", "false"); select([]); },
  n: () => act({ do: "next" }),
  a: () => newClass(),
  e: () => editClasses(),
  l: lasso,
  v: () => view(["class", "doubt", "given", "against"][(["class", "doubt", "given", "against"].indexOf(map.view) + 1) % 4]),
  d: () => state.doubtful.length ? act({ do: "show", rows: [state.doubtful[0].row] }) : toast("None of your labels is doubtful."),
  "/": findRow,
  "?": help,
  s: save,
  "+": () => map.zoomBy(1.4),
  "=": () => map.zoomBy(1.4),
  "-": () => map.zoomBy(1 / 1.4),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("dialog").open || !state || closed) return;
  if (event.target instanceof HTMLInputElement) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const one = state.classes.find((each) => each.key === key);
  if (!one && !(key in COMMANDS) && !/^[0-9]$/.test(key)) return;
  if ((key === " " || key === "Enter") && event.target instanceof HTMLButtonElement && event.target.matches(":focus-visible")) return;
  event.preventDefault();
  if (event.repeat && !["Backspace", "+", "-", "="].includes(key)) return;
  if (busy) waiting = [key, card?.row];  // it is meant for the card that is seen
  else pressed(key);
});

function pressed(key) {
  const one = state.classes.find((each) => each.key === key);
  if (one) pick(one.name);
  else if (key in COMMANDS) COMMANDS[key]();
  else if (key === "0") map.fit();
  else newClass(key);
}

// The map.

function view(name) {
  map.view = name;
  document.querySelectorAll("#views button").forEach((button) => button.setAttribute("aria-pressed", button.dataset.view === name));
  map.draw();
  legend();
}

function legend() {
  const texts = {
    class: "The colour is the most probable class, paler where it is in doubt. Large points have a label.",
    doubt: "The stronger the colour, the less sure is the class.",
    given: "Rows that have a label.",
    against: `Labels ${state?.guesses ? "and guesses " : ""}that the model contradicts.`,
  };
  $("legend").textContent = texts[map.view];
}

function hover(row, at) {
  const box = $("hover");
  box.hidden = row < 0 || !state;
  if (box.hidden) return;
  const [code, doubt, given] = map.bytes.subarray(4 * row, 4 * row + 4);
  const name = state.classes.find((one) => one.code === code)?.name;
  const sure = given !== NOBODY ? "has this label" : name ? `${percent(1 - (doubt / 255) * (1 - 1 / Math.max(2, state.classes.length)))} sure` : "nothing is known";
  const line = make("div");
  if (name) line.append(symbol(code, 12), ` ${name}, `);
  line.append(sure);
  box.replaceChildren(...(card?.image ? [make("img", { alt: "", src: `image/${row}` })] : []), make("div", { textContent: `Row ${number(row + 1)}` }), line);
  box.style.left = `${Math.min(at[0] + 16, map.width - 190)}px`;
  box.style.top = `${Math.min(at[1] + 16, map.height - (card?.image ? 160 : 70))}px`;
}

// News from the studio: other tabs, other people, and the model.

let fetching = false, again = false;
async function refresh() {
  if (fetching) { again = true; return; }
  fetching = true;
  try {
    do {
      again = false;
      const [fresh, bytes] = await Promise.all([fetch("state"), fetch("colours")]);
      if (!fresh.ok || !bytes.ok) return;
      const [seen, table] = [await fresh.json(), new Uint8Array(await bytes.arrayBuffer())];
      if (state && seen.steps < state.steps) { again = true; continue; }  // a key was faster
      state = seen;
      if (map.n * 4 === table.length) map.setColours(table);
      if (card && !card.check && card.label === null && table[4 * card.row + 2] !== NOBODY && !busy) {
        toast(`Row ${number(card.row + 1)} was labelled elsewhere.`);
        await act({ do: "next" });
      } else if (card && card.label === null && !busy) await again_card();
      showStop(state, (row) => act({ do: "show", rows: [row] }));
      if (state.trouble) fail(state.trouble);
      document.body.dataset.turns = state.turns;
      document.body.dataset.labelled = state.labelled;
    } while (again);
  } catch {
    // the next news tries again
  } finally {
    fetching = false;
  }
}

// The card that is shown, with what the model thinks now. A check stays blind.
async function again_card() {
  const row = card.row;
  const answer = await fetch(`card/${row}`);
  const fresh = answer.ok ? await answer.json() : null;
  if (!fresh || busy || card?.row !== row || card.label !== null) return;  // a key was faster
  card = fresh;
  showClasses(card, state, pick);
  why(row);
}

async function places() {
  const answer = await fetch("places");
  if (answer.ok) map.setPlaces(new Float32Array(await answer.arrayBuffer()));
}

let toasting;
function toast(text, stay = false) {
  $("toast").textContent = text;
  $("toast").hidden = false;
  clearTimeout(toasting);
  if (!stay) toasting = setTimeout(() => { $("toast").hidden = true; }, 4200);
}

function fail(text) {
  $("error").textContent = text;
  $("error").hidden = false;
}

let news = null;
async function start() {
  await places();
  news = new EventSource(`events?tab=${tab}`);
  news.addEventListener("message", async (event) => {
    if (event.data === "places") await places();
    if (event.data === "closed") { closed = true; news.close(); document.body.dataset.closed = "yes"; toast("The studio is closed. You can close this tab.", true); return; }
    refresh();
  });
  news.addEventListener("error", () => { if (!closed) fail("The studio does not answer. Labels are saved up to the last one that was shown."); });
  news.addEventListener("open", () => { $("error").hidden = true; });
  await act({ do: "next" });
}

const buttons = { undo, find: findRow, help, save, close: confirmClose, add: () => newClass(), edit: editClasses, accept: agree, lasso, whole: () => map.fit(), nearer: () => map.zoomBy(1.4), farther: () => map.zoomBy(1 / 1.4), skip: COMMANDS[" "] };
for (const [id, does] of Object.entries(buttons)) $(id).addEventListener("click", (event) => { does(); event.currentTarget.blur(); });
document.querySelectorAll("#views button").forEach((button) => button.addEventListener("click", () => { view(button.dataset.view); button.blur(); }));
const kept = localStorage.getItem("coxfield-theme");
if (kept) document.documentElement.dataset.theme = kept;
const repaint = () => { if (state && card) { showCard(card, state, pick); showStop(state, (row) => act({ do: "show", rows: [row] })); why(card.row); } map.draw(); };
$("theme").addEventListener("click", () => {
  const next = dark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("coxfield-theme", next);
  repaint();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
document.body.dataset.renderer = map.kind;
window.studioMap = map;
start();
