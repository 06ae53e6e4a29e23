// What explains itself where it is pointed at (`title`) does so for keys and fingers as well. What is said stands
// apart from what it is about, so that a refresh that draws that anew does not take it away.

const FARTHEST_PX = 8;
const bubble = Object.assign(document.createElement("div"), { className: "ett-bubble", hidden: true, role: "status" });

function explain(node) {
  const text = node.closest?.(".stApp [title]")?.title;
  bubble.hidden = !text;
  if (!text) return;
  if (!bubble.isConnected) document.querySelector(".stApp").append(bubble);
  if (bubble.textContent !== text) bubble.textContent = text; // said anew to those who cannot see it
  const { left, top, bottom } = node.getBoundingClientRect();
  const { offsetWidth, offsetHeight } = bubble;
  const above = top - offsetHeight - FARTHEST_PX / 2;
  bubble.style.left = `${Math.max(Math.min(left, window.innerWidth - offsetWidth - FARTHEST_PX), FARTHEST_PX)}px`;
  bubble.style.top = `${above > 0 ? above : bottom + FARTHEST_PX / 2}px`;
}

const hush = () => (bubble.hidden = true);
const isReached = (node) => node?.matches(":focus-visible");
const LEADS = "a, button, label, summary, .ett-table tbody tr:has(a.ett-go)";

function settle() {
  if (bubble.hidden) return;
  if (isReached(document.activeElement)) explain(document.activeElement);
  else hush();
}

if (!window.ettExplains) {
  document.addEventListener("focusin", ({ target }) => isReached(target) && explain(target));
  document.addEventListener("focusout", () => setTimeout(() => document.activeElement === document.body && hush()));
  document.addEventListener("click", ({ target, pointerType }) => pointerType === "touch" && !target.closest(LEADS) && explain(target));
  document.addEventListener("pointerdown", hush);
  document.addEventListener("scroll", settle, { capture: true, passive: true });
  window.addEventListener("popstate", hush);
  document.addEventListener("keydown", ({ key }) => key === "Escape" && hush());
  window.ettExplains = true;
}
