/* Sinusoidal positions as clocks: two positions to drag, the hands of each pair of features, and their dot product. */

live.define("figures/clocks", (use) => {
  const { element, drawn, slider, sentence, replaceDrawing, fixed } = use("figures/controls");
  const { dot, frequencies } = use("figures/numbers");

  const [D_MODEL, FARTHEST, LAST] = [16, 40, 100]; // the largest distance and position that can be dragged
  const OMEGA = frequencies(D_MODEL);

  /** The vector of a position: sine and cosine of each pair (Vaswani et al. 2017, section 3.5). */
  const position = (p) => OMEGA.flatMap((omega) => [Math.sin(omega * p), Math.cos(omega * p)]);
  const product = (p, s) => dot(position(p), position(s));

  /** A dial with a hand for each of the two positions, as a sine to the right and a cosine upwards. */
  function dial() {
    const hand = (colour, length) => drawn("line", { class: `live-hand live-of-${colour}`, x1: 0, y1: 0, "data-length": length });
    const hands = [hand("key", 24), hand("query", 20)]; // the second position lies below, and is longer: both are seen
    const svg = drawn("svg", { viewBox: "-29 -29 58 58", "aria-hidden": "true" }, drawn("circle", { r: 27 }), ...hands);
    const turn = (...angles) =>
      hands.forEach((line, i) => {
        line.setAttribute("x2", (line.dataset.length * Math.sin(angles[i])).toFixed(2));
        line.setAttribute("y2", (-line.dataset.length * Math.cos(angles[i])).toFixed(2));
      });
    return { svg, turn };
  }

  /** The dot product by distance, with a point at the distance k, on both sides. */
  function curve() {
    const [wide, high] = [340, 110];
    const [x, y] = [(k) => wide / 2 + (k / FARTHEST) * (wide / 2 - 8), (value) => high - 8 - (value / (D_MODEL / 2)) * (high - 22)];
    const all = Array.from({ length: 2 * FARTHEST + 1 }, (_, i) => i - FARTHEST);
    const line = all.map((k) => `${x(k).toFixed(1)},${y(product(0, k)).toFixed(1)}`).join(" ");
    const [here, there] = [1, 2].map(() => drawn("circle", { r: 5 }));
    const zero = drawn("line", { class: "live-axis", x1: 0, x2: wide, y1: y(0), y2: y(0) });
    const words = [
      drawn("text", { x: 2, y: y(0) + 14 }, `−${FARTHEST}`),
      drawn("text", { x: wide - 2, y: y(0) + 14, "text-anchor": "end" }, `${FARTHEST}`),
      drawn("text", { x: wide / 2, y: y(0) + 14, "text-anchor": "middle" }, "distance"),
      drawn("text", { x: wide / 2 + 12, y: 12 }, `${D_MODEL / 2}`),
    ];
    const svg = drawn(
      "svg",
      { class: "live-curve", viewBox: `0 -2 ${wide} ${high + 8}`, role: "img" },
      zero, ...words, drawn("polyline", { points: line }), there, here,
    ); // prettier-ignore
    const mark = (k) => {
      const value = product(0, k);
      [here, there].forEach((point, i) => {
        point.setAttribute("cx", x(i ? -k : k).toFixed(1));
        point.setAttribute("cy", y(value).toFixed(1));
      });
      const falls = `It is ${D_MODEL / 2} at distance 0, and ${fixed(value)} at the distances ${k} and −${k}.`;
      svg.setAttribute("aria-label", `The dot product by distance. ${falls}`);
    };
    return { svg, mark };
  }

  function start(figure) {
    let [p, k] = [5, 3];
    const first = slider("First position", { min: 0, max: LAST, value: p, changed: (value) => draw((p = value)) });
    const second = slider("Distance to the second", { min: 0, max: FARTHEST, value: k, changed: (value) => draw((k = value)) });
    const { said, say } = sentence();
    const dials = OMEGA.map(dial);
    const cosines = OMEGA.map(() => element("span"));
    const clocks = element("div", { class: "live-dials" });
    dials.forEach(({ svg }, i) => {
      const name = element("span", {}, `pair ${i}`);
      clocks.append(element("div", {}, svg, name, cosines[i]));
    });
    const legend = element("p", { class: "live-legend" }, "Blue and shorter: the first position. Orange and longer: the second. Below: the cosine of the angle between them.");
    const byDistance = curve();

    function draw() {
      const s = p + k;
      dials.forEach(({ turn }, i) => {
        turn(OMEGA[i] * s, OMEGA[i] * p);
        cosines[i].textContent = fixed(Math.cos(OMEGA[i] * k));
      });
      byDistance.mark(k);
      say(
        `Positions ${p} and ${s}: the dot product is ${fixed(product(p, s))}. At positions 0 and ${k} it is ` +
          `${fixed(product(0, k))}, at ${LAST} and ${LAST + k} it is ${fixed(product(LAST, LAST + k))}.`,
      );
    }

    replaceDrawing(figure, element("div", { class: "live-form" }, first.field, second.field), said, legend, clocks, byDistance.svg);
    draw();
  }

  return { start, position, product };
});
