// Draws a Plotly figure and redraws it in place, so that zoom and pan outlive a refresh:
// the same node gets Plotly.react with an unchanged uirevision. Plotly comes from this server.

function plotly(source) {
  window.ettPlotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(source, document.baseURI).href;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error("Plotly could not be loaded from " + script.src));
    document.head.appendChild(script);
  });
  return window.ettPlotly;
}

function dressed(layout, box, revision) {
  const styles = getComputedStyle(box);
  const colour = (name) => styles.getPropertyValue(name).trim();
  const text = colour("--st-text-color") || styles.color;
  const line = colour("--st-border-color") || "#8888";
  const surface = colour("--st-secondary-background-color") || "#fff";
  const axis = (own) => ({ gridcolor: line, linecolor: line, tickcolor: line, zerolinecolor: line, ...own });
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    hoverlabel: { bgcolor: surface, bordercolor: line, align: "left", font: { color: text, size: 13, family: styles.fontFamily } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: line, activecolor: text },
    ...layout,
    font: { color: text, size: 13, family: styles.fontFamily },
    xaxis: axis(layout.xaxis),
    yaxis: axis(layout.yaxis),
    uirevision: revision,
    autosize: true,
  };
}

// A click on a point whose `customdata` is an address follows it, as a link on the page would.
function follow(box, { points, event }) {
  const href = points?.[0]?.customdata;
  if (typeof href !== "string" || !href) return;
  const link = Object.assign(document.createElement("a"), { href, className: "ett-go" });
  const { ctrlKey, metaKey, shiftKey, altKey } = event ?? {};
  box.append(link);
  link.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, ctrlKey, metaKey, shiftKey, altKey }));
  link.remove();
}

const TWICE_MS = 350; // within this a second click makes a double one, which shows all of the time again

function choose(box, happened) {
  clearTimeout(box.ettChoosing);
  if (box.ettTwice && performance.now() - box.ettTwice < TWICE_MS) return;
  box.ettChoosing = setTimeout(() => follow(box, happened), box.ettZooms ? TWICE_MS : 0);
}

function twice(box) {
  clearTimeout(box.ettChoosing);
  box.ettTwice = performance.now();
}

function point(box, { points }) {
  const over = typeof points?.[0]?.customdata === "string" && points[0].customdata;
  box.classList.toggle("ett-leads", Boolean(over));
}

function milliseconds(moment) {
  const [day, clock = "00:00"] = String(moment).split(" ");
  return Date.parse(`${day}T${clock}Z`);
}

const PAUSE_MS = 200; // a wheel or a drag tells of many ranges; the last one counts

// Says which part of the axis of time is shown, null for all of it.
function tell(box, change) {
  const [begin, end] = change["xaxis.range"] ?? [change["xaxis.range[0]"], change["xaxis.range[1]"]];
  const whole = change["xaxis.autorange"] === true;
  if (!whole && (begin == null || end == null)) return;
  clearTimeout(box.ettTelling);
  const part = whole ? null : [milliseconds(begin), milliseconds(end)];
  box.ettTelling = setTimeout(() => box.ettSays({ revision: box.ettRevision, part }), PAUSE_MS);
}

function listen(box) {
  if (box.ettListens) return;
  box.ettListens = true;
  box.on("plotly_click", (happened) => choose(box, happened));
  box.on("plotly_doubleclick", () => twice(box));
  box.on("plotly_hover", (happened) => point(box, happened));
  box.on("plotly_unhover", () => box.classList.remove("ett-leads"));
  box.on("plotly_relayout", (change) => box.ettSays && tell(box, change));
}

const idle = window.requestIdleCallback ?? ((go) => setTimeout(go, 50)); // Safari has none
const LATEST_MS = 1000;

// Comes at once for what is in sight, and for the rest when the browser has nothing else to do.
function turn(box) {
  const { top, bottom } = box.getBoundingClientRect();
  if (bottom > 0 && top < window.innerHeight) return null;
  return new Promise((go) => idle(go, { timeout: LATEST_MS }));
}

const DRAG_MS = 50;

async function put(box, face, data) {
  const Plotly = await plotly(data.plotly);
  if (data.inTurn) await turn(box); // on paper all is drawn before it is printed
  while (box._dragging) await new Promise((go) => setTimeout(go, DRAG_MS)); // what is half drawn out would be lost
  if (box.ettFace !== face) return; // another figure came meanwhile, or the chart went
  const { data: traces, layout } = data.figure;
  const config = {
    displaylogo: false,
    displayModeBar: data.zoom && !window.matchMedia("(hover: none)").matches ? "hover" : false, // over words, where nothing hovers
    modeBarButtons: buttons,
    responsive: true,
  };
  await Plotly.react(box, traces, dressed(layout, box, data.revision), config);
  listen(box);
  box.dataset.drawn = String(Number(box.dataset.drawn || 0) + 1);
}

const buttons = [["zoom2d", "pan2d", "resetScale2d"]];

export default function ({ parentElement, data, setStateValue }) {
  const box = parentElement.querySelector(".ett-chart");
  box.ettRevision = data.revision;
  box.ettZooms = data.zoom;
  box.ettSays = data.watched ? (shown) => setStateValue("shown", shown) : null;
  const face = JSON.stringify([data.figure, data.revision, getComputedStyle(box).getPropertyValue("--st-text-color")]);
  const away = () => {
    window.Plotly?.purge(box);
    box.ettFace = box.ettListens = null;
  };
  if (box.ettFace === face) return away;
  box.ettFace = face;
  box.style.height = data.figure.layout.height + "px";
  box.setAttribute("role", "figure"); // an image may hold no buttons, and Plotly has some
  box.setAttribute("aria-label", data.title);
  put(box, face, data).catch((error) => (box.textContent = error.message));
  return away;
}
