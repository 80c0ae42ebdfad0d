// The theme writes to the console which colours it has chosen, on every page. Readers need no such message.
const write = console.log;
console.log = (...words) => {
  if (!String(words[0]).startsWith("[PST]")) write(...words);
};
