// A button of class `ett-copy` copies the lines beside it. A browser that lends its clipboard to no page of this
// address (plain HTTP from another machine) has them selected instead, to be copied by hand.

const SAID_MS = 1500;

async function copyLines(event) {
  const button = event.target.closest?.("button.ett-copy");
  const lines = button?.parentElement.querySelector(".ett-lines");
  if (!lines) return;
  const said = await navigator.clipboard?.writeText(lines.textContent).then(() => "Copied", () => "");
  if (!said) window.getSelection().selectAllChildren(lines);
  button.textContent = said || "Selected";
  setTimeout(() => (button.textContent = "Copy"), SAID_MS);
}

if (!window.ettCopies) {
  document.addEventListener("click", copyLines);
  window.ettCopies = true;
}
