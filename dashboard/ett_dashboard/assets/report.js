// A report: draws the figures that stand in the page, again when the theme changes or it is printed.

window.ettPlotly = Promise.resolve(window.Plotly);
const root = document.documentElement;
const charts = JSON.parse(document.getElementById("charts").textContent);
const boxes = [...document.querySelectorAll("[data-chart]")];
const dark = matchMedia("(prefers-color-scheme: dark)");

function drawAll() {
  for (const box of boxes) {
    const chart = charts[Number(box.dataset.chart)];
    draw({ parentElement: box, data: { ...chart, revision: "report", zoom: true, plotly: "" } });
  }
}

// At the width that the page has now: nothing waits on the way to a printer, as Plotly does before it resizes.
function drawAnew() {
  for (const box of boxes) box.querySelector(".ett-chart").ettFace = null;
  drawAll();
}

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
}

document.getElementById("theme").addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  drawAll();
});
dark.addEventListener("change", drawAll);

let shown;
addEventListener("beforeprint", () => {
  shown = { theme: root.dataset.theme, closed: [...document.querySelectorAll("details:not([open])")] };
  root.dataset.theme = "light";
  root.classList.add("printed");
  shown.closed.forEach((part) => (part.open = true));
  drawAnew();
});
addEventListener("afterprint", () => {
  if (shown.theme) root.dataset.theme = shown.theme;
  else delete root.dataset.theme;
  root.classList.remove("printed");
  shown.closed.forEach((part) => (part.open = false));
  drawAnew();
});

drawAll();
