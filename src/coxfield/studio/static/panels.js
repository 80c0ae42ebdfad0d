// What stands beside the map: the card of a row, the classes with their keys, and when to stop.
// All text goes through textContent: a cell with a tag in it is shown as it is written.

import { colour, symbol } from "./palette.js";

export const $ = (id) => document.getElementById(id);
export const make = (kind, options = {}, ...children) => {
  const element = document.createElement(kind);
  Object.assign(element, options);
  element.append(...children);
  return element;
};
const whole = new Intl.NumberFormat("en");
export const number = (value) => whole.format(Math.round(value));
export const percent = (value, places = 0) => `${(100 * value).toFixed(places)} %`;

export function showCard(card, state, pick) {
  const named = new Map(state.classes.map((one) => [one.code, one]));
  $("row").textContent = `Row ${number(card.row + 1)}`;
  $("row").dataset.row = card.row;
  const kind = $("kind");
  kind.className = card.check ? "blind" : "";
  kind.textContent = card.check
    ? "A check: a random row, asked blind"
    : card.label !== null
      ? `${card.source === "table" ? "In the table" : "You said"}: ${named.get(card.label)?.name ?? ""}`
      : card.guess !== null
        ? `Guessed: ${card.guess}`
        : "";
  const media = $("media");
  if (!card.image) media.replaceChildren();
  else {
    const image = make("img", { alt: `Picture of row ${card.row + 1}`, src: `image/${card.row}` });
    image.addEventListener("load", () => image.classList.toggle("pixels", image.naturalWidth < 100));
    media.replaceChildren(image);
  }
  $("text").hidden = card.text === null;
  $("text").textContent = card.text ?? "";
  const lines = card.cells.map((cell) => {
    const value = make("td", { className: cell.rank === undefined ? "value" : "value figure" }, cell.value === "" ? "–" : cell.value);
    if (cell.unit) value.append(make("span", { className: "unit", textContent: ` ${cell.unit}` }));
    const line = make("tr", {}, make("td", { textContent: cell.name }), value, make("td", { className: "rank" }));
    if (cell.rank !== undefined) {
      const dot = make("i");
      dot.style.left = `calc(${(100 * cell.rank).toFixed(1)}% - 1px)`;
      line.lastChild.append(make("div", { className: "rankbar", title: `larger than ${percent(cell.rank)} of the rows` }, dot));
    }
    return line;
  });
  if (card.more) lines.push(make("tr", {}, make("td", { colSpan: 3, textContent: `and ${card.more} more columns` })));
  $("cells").querySelector("tbody").replaceChildren(...lines);
  $("card").scrollTop = 0;
  showClasses(card, state, pick);
}

export function showClasses(card, state, pick) {
  const shares = new Map((card?.opinion ?? []).map((one) => [one.code, one.probability]));
  const best = card?.opinion?.length ? card.opinion[0].code : null;
  const buttons = state.classes.map((one) => {
    const button = make("button", { className: "class", title: `${number(one.given)} given, ${number(one.found)} found` });
    button.append(make("kbd", { textContent: one.key || "·" }), symbol(one.code), make("span", { className: "label", textContent: one.name }));
    if (shares.has(one.code)) {
      const share = shares.get(one.code);
      button.append(make("span", { className: "share", textContent: percent(share) }));
      const fill = make("span", { className: "fill" });
      fill.style.width = percent(share, 1).replace(" ", "");
      fill.style.background = colour(one.code);
      button.append(fill);
    }
    button.classList.toggle("best", one.code === best);
    button.classList.toggle("given", card !== null && one.code === card?.label);
    button.addEventListener("click", () => pick(one.name));
    return button;
  });
  if (!buttons.length) buttons.push(make("p", { className: "empty", textContent: "No class yet. Press a to name the class of this row." }));
  $("classes").replaceChildren(...buttons);
  const agreed = best !== null ? state.classes.find((one) => one.code === best)?.name : card?.guess;
  $("accept").hidden = !agreed || card?.label !== null;
  $("accept").lastElementChild.textContent = `Agree: ${agreed}`;
}

export function showWhy(reasons, state, show, images) {
  const named = new Map(state.classes.map((one) => [one.code, one.name]));
  const voices = reasons.filter((one) => named.has(one.code)).map((one) => {
    const button = make("button", { className: "voice", title: `Row ${one.row + 1} is ${named.get(one.code)}` });
    if (images) button.append(make("img", { alt: "", src: `image/${one.row}` }));
    button.append(symbol(one.code, 12), `${named.get(one.code)} ${percent(one.share)}`);
    button.addEventListener("click", () => show(one.row));
    return button;
  });
  $("why").hidden = voices.length === 0;
  $("why").lastElementChild.replaceChildren(...voices);
}

const SVG = "http://www.w3.org/2000/svg";
const drawn = (kind, attributes) => {
  const element = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};

export function showStop(state, show) {
  $("name").textContent = state.name;
  document.title = `${state.name} · coxfield studio`;
  $("progress").replaceChildren(make("b", { textContent: number(state.labelled) }), ` of ${number(state.rows)} rows labelled`);
  $("done").style.width = `${(100 * state.labelled) / state.rows}%`;
  $("thinking").hidden = !state.thinking;
  const left = state.rows - state.labelled;
  if (state.expected !== null) {
    $("expectedNumber").textContent = left ? number(state.expected) : "0";
    $("expectedText").textContent = left ? `of ${number(left)} found labels, ${percent(state.expected / left, 1)}, as the model sees it` : "Every row has a label.";
  }
  showCurve(state);
  showChecks(state, left);
  $("sureList").replaceChildren(...state.classes.filter((one) => one.sure !== null).map((one) => {
    const bar = make("i");
    bar.style.width = percent(one.sure).replace(" ", "");
    bar.style.background = colour(one.code);
    return make("div", { className: "sure", title: `${number(one.found)} rows found` }, symbol(one.code, 12), make("span", { className: "label", textContent: one.name }), make("span", { className: "track" }, bar), make("span", { className: "number", textContent: percent(one.sure) }));
  }));
  showDoubtful(state, show);
}

function showCurve(state) {
  const points = [...state.curve];
  if (state.expected !== null) points.push([state.by_hand, state.expected]);
  const curve = $("curve");
  curve.replaceChildren();
  if (points.length < 2) return;
  const most = Math.max(...points.map(([, value]) => value), 1), last = Math.max(...points.map(([count]) => count), 1);
  const first = Math.min(...points.map(([count]) => count));
  const place = ([count, value]) => `${(238 * (count - first)) / Math.max(1, last - first) + 1},${57 - 54 * Math.sqrt(value / most)}`;
  const ordered = [...points].sort((a, b) => a[0] - b[0]);
  curve.append(
    drawn("line", { x1: 0, x2: 240, y1: 58, y2: 58, stroke: "var(--line)", "vector-effect": "non-scaling-stroke" }),
    drawn("polyline", { points: ordered.map(place).join(" "), fill: "none", stroke: "var(--accent)", "stroke-width": 2, "vector-effect": "non-scaling-stroke", "stroke-linejoin": "round" }),
  );
}

function showChecks(state, left) {
  const { checks, wrong, low, high } = state.checks;
  $("checkNumber").textContent = checks ? `${percent(low, low < 0.1 ? 1 : 0).replace(" %", "")} – ${percent(high, high < 0.1 ? 1 : 0)}` : "–";
  $("checkText").textContent = checks
    ? `wrong, at 95 %: ${wrong} of ${checks} checks${left ? `, so ${number(low * left)} to ${number(high * left)} rows` : ""}`
    : "Now and then a random row is asked blind. Checks are not learned from, so they measure the true error.";
  const box = $("interval");
  box.replaceChildren();
  if (!checks) return;
  const at = (share) => 240 * Math.sqrt(share);
  box.append(
    drawn("line", { x1: 0, x2: 240, y1: 13, y2: 13, stroke: "var(--line)", "stroke-width": 4, "vector-effect": "non-scaling-stroke", "stroke-linecap": "round" }),
    drawn("line", { x1: at(low), x2: at(high), y1: 13, y2: 13, stroke: "var(--accent)", "stroke-width": 4, "vector-effect": "non-scaling-stroke", "stroke-linecap": "round" }),
    drawn("line", { x1: at(wrong / checks), x2: at(wrong / checks), y1: 5, y2: 21, stroke: "var(--ink)", "stroke-width": 2.5, "vector-effect": "non-scaling-stroke" }),
  );
}

function showDoubtful(state, show) {
  const named = new Map(state.classes.map((one) => [one.code, one.name]));
  const lines = state.doubtful.filter((one) => named.has(one.other)).map((one) => {
    const line = make("button", { className: "doubt" });
    line.append(`Row ${number(one.row + 1)}: you said `, symbol(one.label, 11), ` ${named.get(one.label)}; ${one.neighbours} of ${one.of} neighbours say `, symbol(one.other, 11), ` ${named.get(one.other)}`);
    line.addEventListener("click", () => show(one.row));
    return line;
  });
  $("doubtfulList").replaceChildren(...(lines.length ? lines : [make("p", { className: "nothing", textContent: "None. Labels that the others contradict are listed here." })]));
}
