// Where on the map brokers stand and names fit, whatever the width: nothing overlaps, nothing is cut.

const ROW = { most: 150, least: 17, all: 620 }; // heights in pixels: of a row of brokers, and together
const LEAST_COLUMN = 26;
const LEAST_GAP = 13; // between the middles of two brokers
const LARGEST = 26; // radius of a broker, without its ring
const EDGE = LARGEST + 10; // of the map, around the middles of brokers: rings are not cut

// [{x, y}] in pixels for brokers with x and y from 0 to 1, and the height that takes.
function placesOnMap(width, { brokers, rows, columns }) {
  const margin = width > 560 ? Math.min(130, width * 0.18) : Math.max(EDGE, width * 0.12);
  const room = width - 2 * margin;
  // A tree too deep for the width goes on below, there and back.
  const inBand = columns ? Math.max(2, Math.min(columns, Math.floor(room / LEAST_COLUMN) + 1)) : 1;
  const bands = columns ? Math.ceil(columns / inBand) : 1;
  const row = Math.max(ROW.least, Math.min(ROW.most, ROW.all / (rows * bands)));
  const pad = EDGE;
  const tall = Math.max(rows * bands * row, ROW.most);
  const places = brokers.map(({ x, y }) => {
    if (bands === 1) return { x: margin + x * room, y: pad + y * tall };
    const level = Math.round(x * (columns - 1));
    const [band, along] = [Math.floor(level / inBand), level % inBand];
    const part = (band % 2 ? inBand - 1 - along : along) / (inBand - 1);
    return { x: margin + part * room, y: pad + ((band + y) / bands) * tall };
  });
  const height = tall + 2 * pad;
  pushApart(places, [margin / 2, width - margin / 2], [pad / 2, height - pad / 2]);
  return { places, height };
}

function pushApart(places, [left, right], [top, bottom]) {
  const rounds = Math.min(60, Math.floor(2e7 / places.length ** 2));
  for (let round = 0; round < rounds; round += 1) {
    let moved = false;
    places.forEach((one, i) => {
      for (let j = 0; j < i; j += 1) {
        const other = places[j];
        let [dx, dy] = [one.x - other.x, one.y - other.y];
        const apart = Math.hypot(dx, dy);
        if (apart >= LEAST_GAP - 0.01) continue;
        if (apart < 1e-6) [dx, dy] = [Math.cos(i), Math.sin(i)];
        const by = (LEAST_GAP - apart) / 2 / (Math.hypot(dx, dy) || 1);
        for (const [place, sign] of [[one, 1], [other, -1]]) {
          place.x = Math.min(right, Math.max(left, place.x + sign * by * dx));
          place.y = Math.min(bottom, Math.max(top, place.y + sign * by * dy));
        }
        moved = true;
      }
    });
    if (!moved) return;
  }
}

// The largest radius at which no two brokers touch.
function roomForBrokers(places) {
  let nearest = Infinity;
  places.forEach((one, i) => {
    for (let j = 0; j < i; j += 1) {
      nearest = Math.min(nearest, Math.hypot(one.x - places[j].x, one.y - places[j].y));
    }
  });
  return Math.max(3.5, Math.min(LARGEST, nearest * (places.length > 30 ? 0.28 : 0.36)));
}

// Finds room for texts, one after the other, where nothing is yet.
class Lettering {
  constructor(width, height, lines = []) {
    Object.assign(this, { width, height, lines, taken: [], crossed: 0 });
    this.pen = document.createElement("canvas").getContext("2d");
    this.family = getComputedStyle(document.body).fontFamily;
  }

  take(left, top, right, bottom) { this.taken.push([left, top, right, bottom]); }

  widthOf(text, size, weight) {
    this.pen.font = `${weight} ${size}px ${this.family}`;
    return this.pen.measureText(text).width;
  }

  // Where lines of a text can stand near a circle: [x, y of the first line, anchor]; null for nowhere.
  find(lines, { x, y, radius }, { size, weight }) {
    const wide = Math.max(...lines.map((line) => this.widthOf(line, size, weight))) + 4;
    const high = 14 * lines.length;
    const middle = Math.min(this.width - wide / 2 - 1, Math.max(wide / 2 + 1, x));
    const after = [x + radius + 4, y - high / 2, "start", x + radius + 2];
    const before = [x - radius - 4, y - high / 2, "end", x - radius - 2 - wide];
    const spots = [
      [middle, y + radius + 3, "middle", middle - wide / 2],
      [middle, y - radius - 3 - high, "middle", middle - wide / 2],
      ...(x < this.width / 2 ? [before, after] : [after, before]), // outward first
    ];
    const free = spots
      .map(([at, top, anchor, left]) => ({ spot: [at, top + 11, anchor], box: [left, top, left + wide, top + high] }))
      .filter(({ box }) => this.isFree(box));
    if (!free.length) return null;
    const clear = free.find(({ box }) => !this.lines.some((line) => crosses(line, box)));
    this.crossed += clear ? 0 : 1;
    const { spot, box } = clear || free[0];
    this.take(...box);
    return spot;
  }

  isFree([left, top, right, bottom]) {
    if (left < 0 || right > this.width || top < 0 || bottom > this.height) return false;
    return !this.taken.some((other) => left < other[2] && other[0] < right && top < other[3] && other[1] < bottom);
  }
}

// Whether a line lies over a box: what is left of it between the box's sides, pair by pair.
function crosses([x1, y1, x2, y2], [left, top, right, bottom]) {
  let [from, to] = [0, 1];
  for (const [start, way, low, high] of [[x1, x2 - x1, left, right], [y1, y2 - y1, top, bottom]]) {
    if (way === 0 && (start <= low || start >= high)) return false;
    if (way === 0) continue;
    const [one, other] = [(low - start) / way, (high - start) / way];
    from = Math.max(from, Math.min(one, other));
    to = Math.min(to, Math.max(one, other));
  }
  return from < to;
}
