// What a viewer has reached by key, and where a box is scrolled to, outlives a refresh. A piece of HTML is drawn anew
// once any figure in it changes, and what its old nodes had would go with them: the node of the same name in the
// same piece gets it again before anything is painted.

const REACHED = "a, button, summary, [tabindex]";
const scrolled = new Map();
let focused = null;

const named = (node) => [node.tagName, node.dataset.name ?? node.getAttribute("href") ?? node.getAttribute("aria-label") ?? node.textContent].join(" ");
const alike = (piece, name) => Array.from(piece.querySelectorAll(REACHED)).filter((node) => named(node) === name);

// Where a node is found again: by its name, and which of that name it is; null outside of pieces that are drawn anew.
function place(node) {
  const piece = node.closest?.(".stHtml");
  if (!piece || !node.matches(REACHED)) return null;
  const name = named(node);
  return { node, piece, name, nth: alike(piece, name).indexOf(node) };
}

const isGone = (place) => place && !place.node.isConnected;
const again = ({ piece, name, nth }) => alike(piece.isConnected ? piece : document, name)[nth];

function keep() {
  for (const [key, { left, top, page, ...old }] of scrolled) {
    if (!isGone(old)) continue;
    scrolled.delete(key);
    if (page === window.location.href) again(old)?.scrollTo(left, top); // noted as any other scrolling
  }
  if (!isGone(focused)) return;
  const found = document.activeElement === document.body && again(focused);
  focused = null;
  if (found) found.focus({ preventScroll: true });
}

if (!window.ettKeeps) {
  document.addEventListener("focusin", ({ target }) => (focused = place(target)));
  document.addEventListener("focusout", ({ target }) =>
    queueMicrotask(() => {
      if (focused?.node === target && target.isConnected && document.activeElement !== target) focused = null;
    }),
  );
  const noteScroll = ({ target }) => {
    const found = target.nodeType === Node.ELEMENT_NODE && place(target);
    if (found) scrolled.set(`${found.name} ${found.nth}`, { ...found, left: target.scrollLeft, top: target.scrollTop, page: window.location.href });
  };
  document.addEventListener("scroll", noteScroll, { capture: true, passive: true });
  new MutationObserver(keep).observe(document.body, { subtree: true, childList: true });
  window.ettKeeps = true;
}
