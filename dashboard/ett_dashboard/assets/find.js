// A box for one of very many: what is typed is looked for within the options, every word of it, in any order.
// Shown and walked as the pattern "combobox" of ARIA says. All words are set as text, never as markup.

const MOST_SHOWN = 100;
const plainly = (text) => text.normalize("NFKD").toLowerCase();

function matching(options, typed) {
  const words = plainly(typed).split(/\s+/).filter(Boolean);
  return options.filter(([value, text]) => words.every((word) => plainly(`${text} ${value}`).includes(word)));
}

let lists = 0;

// `options` are pairs of a value and what is shown of it; returns the node, and what makes it show a value.
function finder(title, options, hint, current, choose) {
  const list = Object.assign(document.createElement("ul"), { id: `ett-list-${++lists}`, role: "listbox", hidden: true, ariaLabel: title });
  const input = Object.assign(document.createElement("input"), { type: "text", role: "combobox", autocomplete: "off", placeholder: hint, ariaLabel: title });
  const whole = document.createElement("div");
  whole.className = "ett-find";
  whole.append(input, list);
  input.setAttribute("aria-controls", list.id);
  input.setAttribute("aria-autocomplete", "list");
  let found = [];
  let at = -1;

  const mark = (place) => {
    at = Math.min(place, found.length - 1);
    Array.from(list.children).forEach((node, number) => (node.ariaSelected = String(number === at)));
    const active = list.children[at];
    if (active) input.setAttribute("aria-activedescendant", active.id);
    else input.removeAttribute("aria-activedescendant");
    active?.scrollIntoView({ block: "nearest" });
  };
  const line = (parts) => Object.assign(document.createElement("li"), { role: "option", dir: "auto", ...parts });
  const open = (typed) => {
    const all = matching(options, typed);
    found = all.slice(0, MOST_SHOWN);
    const lines = found.map(([, textContent], number) => line({ textContent, id: `${list.id}-${number}` }));
    if (all.length > found.length) lines.push(line({ textContent: `and ${all.length - found.length} more: type a part`, ariaDisabled: "true" }));
    if (!all.length) lines.push(line({ textContent: "Nothing has this in its name", ariaDisabled: "true" }));
    list.replaceChildren(...lines);
    list.hidden = false;
    input.ariaExpanded = "true";
    mark(typed ? 0 : found.findIndex(([value]) => value === current()));
  };
  const show = () => {
    if (!list.hidden) return;
    const known = options.find(([value]) => value === current());
    input.value = known && known[0] ? known[1] : "";
  };
  const close = () => {
    list.hidden = true;
    input.ariaExpanded = "false";
    input.removeAttribute("aria-activedescendant");
    show();
  };
  const take = (place) => {
    const chosen = found[place];
    if (!chosen) return;
    close();
    choose(chosen[0]);
    show();
    input.select();
  };
  const keys = {
    ArrowDown: () => (list.hidden ? open("") : mark(at + 1)),
    ArrowUp: () => (list.hidden ? open("") : mark(Math.max(at - 1, 0))),
    Enter: () => take(at),
    Escape: close,
  };
  input.onkeydown = (event) => {
    if (!keys[event.key] || (list.hidden && !event.key.startsWith("Arrow"))) return;
    event.preventDefault();
    event.stopPropagation(); // what the box stands in stays open
    keys[event.key]();
  };
  input.onclick = () => {
    input.select();
    if (list.hidden) open("");
  };
  input.oninput = () => open(input.value);
  input.onblur = close;
  list.onmousedown = (event) => event.preventDefault(); // the box keeps the focus
  list.onclick = (event) => take(Array.from(list.children).indexOf(event.target.closest("li")));
  close();
  return [whole, show];
}
