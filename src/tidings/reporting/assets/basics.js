// Elements, numbers as people read them, and the tooltip.

const SVG = "http://www.w3.org/2000/svg";
const ENDLESS = 1e300; // what is beyond stands for infinity

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  // Strings become text nodes: no name can turn into markup.
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
const html = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);
const find = (selector) => document.querySelector(selector);

const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);
const significant = (value, digits) => String(Number(value.toPrecision(digits)));

function percent(share, error) {
  if (!known(share)) return "–";
  const edge = 100 * Math.min(Math.abs(share), Math.abs(1 - share));
  let digits = edge >= 0.5 || edge === 0 ? 1 : edge >= 0.02 ? 2 : 3;
  if (known(error) && error > 0) {
    digits = Math.min(3, Math.max(1, Math.ceil(-Math.log10(100 * error) - 1e-9)));
  }
  const text = (100 * share).toFixed(edge === 0 && !known(error) ? 0 : digits);
  return known(error) ? `${text} ± ${(100 * error).toFixed(digits)} %` : `${text} %`;
}

// An error of a share, in percentage points.
const points = (error) => (known(error) ? `${significant(100 * error, 2)} %` : "–");

const UNITS = [["d", 86400, 1.5], ["h", 3600, 1.5], ["min", 60, 2], ["s", 1, 1], ["ms", 1e-3, 1]];

function seconds(value) {
  if (!known(value)) return "–";
  if (Math.abs(value) > ENDLESS) return "infinite";
  if (value === 0) return "0 s";
  for (const [unit, scale, least] of UNITS) {
    if (Math.abs(value) >= scale * least) return `${significant(value / scale, 3)} ${unit}`;
  }
  return `${significant(value * 1e6, 3)} µs`;
}

function rate(perSecond) {
  if (!known(perSecond)) return "–";
  for (const [unit, scale] of [["s", 1], ["min", 60], ["h", 3600]]) {
    if (perSecond === 0 || perSecond * scale >= 0.5) {
      return `${significant(perSecond * scale, 3)} /${unit}`;
    }
  }
  return `${significant(perSecond * 86400, 3)} /d`;
}

function quantity(value, unit, error) {
  if (!known(value)) return "–";
  if (unit === "share" || unit === "probability") return percent(value, error);
  if (unit === "s") {
    const text = seconds(value);
    if (!known(error) || value === 0) return text;
    const [number, name] = [text.slice(0, text.lastIndexOf(" ")), text.slice(text.lastIndexOf(" ") + 1)];
    return `${number} ± ${significant((error * Number(number)) / value, 2)} ${name}`;
  }
  const text = significant(value, 4) + (known(error) ? ` ± ${significant(error, 2)}` : "");
  return `${text} ${unit === "1/s" ? "/s" : unit}`.trim();
}

const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// ---- the tooltip: on hover and on keyboard focus -------------------------------------------

function showTip(text, x, y) {
  const tip = find("#tooltip");
  tip.textContent = text;
  tip.hidden = false;
  const left = Math.min(x + 14, window.innerWidth - tip.offsetWidth - 8);
  const above = y + 16 + tip.offsetHeight > window.innerHeight;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${Math.max(8, above ? y - tip.offsetHeight - 12 : y + 16)}px`;
}
const hideTip = () => { find("#tooltip").hidden = true; };

function withTip(element, text) {
  element.addEventListener("pointermove", (event) => showTip(text, event.clientX, event.clientY));
  element.addEventListener("pointerleave", hideTip);
  element.addEventListener("focus", () => {
    const box = element.getBoundingClientRect();
    showTip(text, box.left + box.width / 2, box.top + box.height / 2);
  });
  element.addEventListener("blur", hideTip);
  return element;
}

// Something in a chart that can be chosen with mouse and keyboard alike.
function pickable(element, label, pick) {
  element.setAttribute("tabindex", "0");
  element.setAttribute("role", "button");
  element.setAttribute("aria-label", label);
  element.classList.add("pickable");
  element.addEventListener("click", pick);
  element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pick();
    }
  });
  return element;
}

// ---- drawing again when the room changes --------------------------------------------------

function responsive(container, draw) {
  let width = 0;
  const redraw = () => {
    if (!container.clientWidth) return;
    width = container.clientWidth;
    container.replaceChildren(...draw(width));
  };
  new ResizeObserver(() => {
    if (Math.abs(container.clientWidth - width) > 1) requestAnimationFrame(redraw);
  }).observe(container);
  redraw();
  return redraw;
}
