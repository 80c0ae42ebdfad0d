// One colour and one symbol for each class. The colours are those of Okabe and Ito, which colour-blind people can tell
// apart; two of them are darker on a light ground, so that they can be seen. Beyond eight classes symbols change first.

const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a7500", "#444b54"];
const DARK = ["#4aa3df", "#f0813c", "#2fc79a", "#e3a0c4", "#f2b834", "#8fd0f7", "#e8dc5a", "#b9c2cc"];
export const NOBODY = 255;

export const dark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
export const colours = () => (dark() ? DARK : LIGHT);
export const colour = (code) => (code === NOBODY ? (dark() ? "#59626d" : "#b4bbc4") : colours()[code % 8]);
export const shape = (code) => (code + Math.floor(code / 8)) % 8;
export const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);

// The same eight shapes as in the shader of the map, in a square of 16.
const PATHS = [
  "M8 2a6 6 0 1 0 .01 0Z",
  "M2.5 2.5h11v11h-11Z",
  "M8 2 14.500 13.500h-13Z",
  "M8 1 14.500 8 8 15 1.500 8Z",
  "M1.500 2.500h13L8 14Z",
  "M5.700 1.500h4.600v4.200h4.200v4.600h-4.200v4.200H5.700v-4.200H1.500V5.700h4.200Z",
  "M4.300 1.500 8 5.200l3.700-3.700 2.800 2.800L10.800 8l3.700 3.700-2.800 2.800L8 10.800l-3.700 3.700-2.800-2.800L5.200 8 1.500 4.300Z",
  "M8 1.500a6.500 6.500 0 1 0 .01 0ZM8 5a3 3 0 1 1-.01 0Z",
];

export function symbol(code, size = 14) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("width", size);
  svg.setAttribute("height", size);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", PATHS[shape(code)]);
  path.setAttribute("fill", colour(code));
  path.setAttribute("fill-rule", "evenodd");
  svg.append(path);
  return svg;
}
