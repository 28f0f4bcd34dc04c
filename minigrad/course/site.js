// What a site does with scripts: dark or light, search, and the section that one reads. Everything
// else is there without them. It loads search.js, beside it, when somebody begins to search.

const MOST_SHOWN = 20, BEFORE = 50, AFTER = 130;
const DARK = "(prefers-color-scheme: dark)";
const KEY = "minigrad-dark";

function remembered() {
  try { return localStorage.getItem(KEY); } catch { return null; }
}

function isDark() {
  const chosen = remembered();
  return chosen === null ? matchMedia(DARK).matches : chosen === "yes";
}

function showTheme() {
  document.getElementById("dark").media = isDark() ? "all" : "not all";
  const button = document.querySelector("header button");
  if (button) button.textContent = isDark() ? "Light" : "Dark";
}

function switchTheme() {
  const now = isDark() ? "no" : "yes";
  try { localStorage.setItem(KEY, now); } catch { /* it lasts as long as the page */ }
  showTheme();
}

// The sections that have all words, best first: a word of a heading counts most.
function find(words) {
  const found = [];
  for (const [file, title, id, heading, text] of SECTIONS) {
    const head = heading.toLowerCase(), body = text.toLowerCase();
    if (!words.every(word => head.includes(word) || body.includes(word))) continue;
    let points = 0;
    for (const word of words)
      points += (head.includes(word) ? 10 : 0) + Math.min(body.split(word).length - 1, 5);
    found.push({file, title, id, heading, text, points});
  }
  return found.sort((a, b) => b.points - a.points);
}

// Text as it stands, the words in <mark>; nothing of it is read as HTML.
function marked(text, words) {
  const parts = document.createDocumentFragment(), low = text.toLowerCase();
  for (let at = 0; at < text.length;) {
    const next = words
      .map(word => [low.indexOf(word, at), word.length])
      .filter(([place]) => place >= 0)
      .sort(([a, n], [b, m]) => a - b || m - n)[0] ?? [text.length, 0];
    const mark = document.createElement("mark");
    mark.textContent = text.slice(next[0], next[0] + next[1]);
    parts.append(text.slice(at, next[0]), ...(next[1] ? [mark] : []));
    at = next[0] + next[1];
  }
  return parts;
}

function excerpt(text, words) {
  const low = text.toLowerCase();
  const places = words.map(word => low.indexOf(word)).filter(place => place >= 0);
  const from = (places.length ? Math.min(...places) : 0) - BEFORE;
  const begin = from <= 0 ? 0 : text.indexOf(" ", from) + 1; // a whole word
  const end = begin + BEFORE + AFTER;
  const rest = end < text.length ? text.slice(begin, end).replace(/\S*$/, "…") : text.slice(begin);
  return (begin ? "… " : "") + rest;
}

function row({file, title, id, heading, text}, words) {
  const item = document.createElement("li"), link = document.createElement("a");
  const head = document.createElement("b"), where = document.createElement("small");
  link.href = file + "#" + encodeURIComponent(id);
  head.append(marked(heading, words));
  where.textContent = heading === title ? "" : title;
  link.append(head, where, document.createElement("br"), marked(excerpt(text, words), words));
  item.append(link);
  return item;
}

function prepareSearch(form) {
  const input = form.querySelector("input"), panel = form.querySelector(".found");
  const list = form.querySelector("ul"), count = form.querySelector("output");
  let script = null;

  function load() {
    if (script) return;
    script = document.createElement("script");
    script.src = "search.js";
    script.onload = show;
    document.head.append(script);
  }

  function show() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    panel.hidden = words.length === 0;
    if (panel.hidden || typeof SECTIONS === "undefined") return;
    const found = find(words);
    const of = found.length > MOST_SHOWN ? `, the best ${MOST_SHOWN} of them` : "";
    count.textContent = `${found.length} ${found.length === 1 ? "section" : "sections"}${of}`;
    list.replaceChildren(...found.slice(0, MOST_SHOWN).map(one => row(one, words)));
    panel.scrollTop = 0;
  }

  function move(step) {
    const stops = [input, ...list.querySelectorAll("a")];
    const next = stops[stops.indexOf(document.activeElement) + step];
    if (next) next.focus();
  }

  input.addEventListener("focus", () => { load(); show(); });
  input.addEventListener("input", () => { load(); show(); });
  form.addEventListener("submit", event => {
    event.preventDefault();
    list.querySelector("a")?.click();
  });
  form.addEventListener("keydown", event => {
    if (event.key === "Escape") { input.focus(); panel.hidden = true; }
    else if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else return;
    event.preventDefault();
  });
  list.addEventListener("click", () => { panel.hidden = true; });
  document.addEventListener("click", event => { panel.hidden ||= !form.contains(event.target); });
  form.addEventListener("focusout", event => {
    if (event.relatedTarget && !form.contains(event.relatedTarget)) panel.hidden = true;
  });
  document.addEventListener("keydown", event => {
    const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
  });
  form.hidden = false;
}

// In the table of contents: which section is at the top of the window.
function followReading(contents) {
  const links = [...contents.querySelectorAll("a")];
  const headings = links.map(link => document.getElementById(link.getAttribute("href").slice(1)));
  function mark() {
    const here = headings.findLastIndex(one => one?.getBoundingClientRect().top < 120);
    links.forEach((link, k) => {
      if (k === here) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
  }
  addEventListener("scroll", mark, {passive: true});
  mark();
}

showTheme(); // before anything is drawn
document.addEventListener("DOMContentLoaded", () => {
  const button = document.querySelector("header button");
  button.addEventListener("click", switchTheme);
  button.hidden = false;
  showTheme();
  matchMedia(DARK).addEventListener("change", showTheme);
  prepareSearch(document.querySelector("header form"));
  const contents = document.querySelector(".contents");
  if (!contents) return;
  if (!matchMedia("(min-width: 68rem)").matches) contents.querySelector("details").open = false;
  followReading(contents);
});
