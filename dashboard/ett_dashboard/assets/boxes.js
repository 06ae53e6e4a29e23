// Boxes in which a viewer chooses: they show what the address says, and change nothing but the address.
// All words are set as text, never as markup.

const there = (name) => new URLSearchParams(window.location.search).get(name) ?? "";

function choose({ name, usual, clears }, value) {
  const address = new URL(window.location.href);
  if (value === there(name)) return;
  for (const other of clears ?? []) address.searchParams.delete(other);
  if (value && value !== usual) address.searchParams.set(name, value);
  else address.searchParams.delete(name);
  if (address.href !== window.location.href) go(address.href);
}

function node(tag, parts = {}, ...children) {
  const made = Object.assign(document.createElement(tag), parts);
  made.append(...children);
  return made;
}

// Options are words, or pairs of the word in the address and the one that is shown.
const pairs = (box) => box.options.map((option) => (Array.isArray(option) ? option : [option, option]));

function ticks(box, type, chosen) {
  const inputs = pairs(box).map(([value, text]) => {
    const input = node("input", { type, value, name: `ett ${box.name}` });
    return [input, node("label", {}, input, node("span", { textContent: text, dir: "auto" }))];
  });
  const group = node("div", { className: `ett-ticks ett-${type}`, role: type === "radio" ? "radiogroup" : "group", title: box.meaning ?? "" });
  group.append(...inputs.map(([, label]) => label));
  group.onchange = () => choose(box, inputs.filter(([{ checked }]) => checked).map(([{ value }]) => value).join(","));
  const show = () => inputs.forEach(([input]) => (input.checked = chosen().includes(input.value)));
  return [group, show];
}

function entry(box, parts) {
  const input = node("input", { ...parts, placeholder: box.hint ?? "", autocomplete: "off", title: box.meaning ?? "" });
  let isTyping = false;
  const show = () => isTyping || (input.value = there(box.name));
  input.oninput = () => (isTyping = true);
  input.onchange = () => {
    isTyping = false;
    choose(box, input.validity.valid ? input.value.trim() : "");
    show();
  };
  return [input, show];
}

const SLID_MS = 300; // keys and the mouse pass many values on their way; the one that stays counts

function slide(box) {
  const input = node("input", { type: "range", min: 0, max: box.most, step: box.step, title: box.meaning ?? "", ariaLabel: box.title });
  const said = node("output");
  let sliding = 0;
  const show = () => {
    if (sliding) return;
    input.value = there(box.name) || box.usual;
    said.textContent = there(box.name) || box.usual;
  };
  const take = () => {
    sliding = 0;
    choose(box, input.value);
  };
  input.oninput = () => {
    said.textContent = input.value;
    clearTimeout(sliding);
    sliding = setTimeout(take, SLID_MS);
  };
  return [node("div", { className: "ett-slide" }, input, said), show];
}

// Of each kind of box: what is put on the page, and what makes it show what the address says.
const kinds = {
  few: (box) => ticks(box, "radio", () => [pairs(box).some(([value]) => value === there(box.name)) ? there(box.name) : box.usual]),
  several: (box) => ticks(box, "checkbox", () => there(box.name).split(",")),
  words: (box) => entry(box, { type: "text" }),
  slide,
  amount: (box) => entry(box, { type: "number", min: 0, max: box.most, step: "any" }),
  many: (box) => {
    const options = pairs(box).map(([value, text]) => node("option", { value, textContent: text }));
    const select = node("select", { title: box.meaning ?? "" }, ...options);
    select.onchange = () => choose(box, select.value);
    return [select, () => (select.value = there(box.name))];
  },
  find: (box) => {
    const options = pairs(box);
    const hint = box.hint ?? options.find(([value]) => !value)?.[1] ?? "";
    return finder(box.title, options, hint, () => there(box.name), (value) => choose(box, value));
  },
};

function drawn(box) {
  const [control, show] = kinds[box.kind](box);
  if (!["find", "slide"].includes(box.kind)) control.ariaLabel = box.title;
  const title = box.titled ? [node("i", { textContent: box.title, title: box.meaning ?? "" })] : [];
  return [node("div", { className: `ett-box ett-box-${box.kind}` }, ...title, control), show];
}

export default function ({ parentElement, data }) {
  const row = parentElement.querySelector(".ett-boxes");
  const face = JSON.stringify(data.boxes);
  if (row.dataset.face !== face) {
    row.dataset.face = face;
    const boxes = data.boxes.map(drawn);
    row.replaceChildren(...boxes.map(([made]) => made));
    row.ettShow = () => boxes.forEach(([, show]) => show());
  }
  row.ettShow();
  const follow = () => row.ettShow();
  window.addEventListener("popstate", follow);
  return () => window.removeEventListener("popstate", follow);
}
