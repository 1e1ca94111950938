/* What all figures share: elements, controls with their labels, bars, and the sentence that says what is seen. */

live.define("figures/controls", () => {
  let numbered = 0; // so that every label has an id to name
  const freshId = () => `live-${numbered++}`;

  /** element("p", {class: "note"}, "text", child) */
  function element(tag, attributes = {}, ...children) {
    return filled(document.createElement(tag), attributes, children);
  }

  /** The same for a part of a drawing. */
  function drawn(tag, attributes = {}, ...children) {
    return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  }

  function filled(made, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === true) made.setAttribute(name, "");
      else if (value !== false && value != null) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  /** A control under its label. */
  function labelled(text, control, wide = false) {
    control.id ||= freshId();
    return element("div", { class: wide ? "live-field live-wide" : "live-field" }, element("label", { for: control.id }, text), control);
  }

  function select(options, chosen = 0) {
    const made = element("select");
    options.forEach((text, value) => made.append(element("option", { value, selected: value === chosen }, text)));
    return made;
  }

  /** One of a few, all in sight: radio buttons, along which the arrow keys walk, and which every reader's software knows.

      `changed(i)` is called with the choice. Returns {field, choose(i)}; `choose` calls nothing. */
  function choice(legend, options, chosen, changed) {
    const name = freshId();
    const line = element("div", { class: "live-line" });
    const radios = options.map((text, i) => {
      const radio = element("input", { type: "radio", name, value: i, id: `${name}-${i}`, checked: i === chosen });
      radio.addEventListener("change", () => changed(i));
      line.append(radio, element("label", { for: radio.id }, text));
      return radio;
    });
    const field = element("fieldset", { class: "live-choice" }, element("legend", {}, legend), line);
    return { field, choose: (i) => radios.forEach((radio, j) => (radio.checked = j === i)) };
  }

  /** A number to drag, by finger, mouse or arrow keys; its value stands beside the label and is what is read aloud.

      `shown(value)` is its text, `changed(value)` is called while it is dragged. Returns {field, set(value)}. */
  function slider(label, { min, max, step = 1, value, shown = String, changed }) {
    const input = element("input", { type: "range", min, max, step, value, id: freshId() });
    const output = element("output", { for: input.id });
    const tell = () => {
      output.textContent = shown(Number(input.value));
      input.setAttribute("aria-valuetext", output.textContent);
    };
    // A finger that scrolls the page may come down on a slider, which moves before the browser knows and cancels the
    // touch. So nothing follows it until it goes sideways or up, and then it is where it was.
    let before = null;
    let from;
    const meant = () => {
      if (before === null) return;
      before = null;
      changed(Number(input.value));
    };
    input.addEventListener("input", () => {
      tell();
      if (before === null) changed(Number(input.value));
    });
    input.addEventListener("pointerdown", (event) => {
      before = event.pointerType === "mouse" ? null : input.value;
      from = event;
    });
    input.addEventListener("pointermove", (event) => {
      if (before !== null && Math.abs(event.clientX - from.clientX) > Math.abs(event.clientY - from.clientY)) meant();
    });
    input.addEventListener("pointerup", meant);
    input.addEventListener("pointercancel", () => {
      if (before !== null) set(before);
      before = null;
    });
    tell();
    const head = element("div", {}, element("label", { for: input.id }, label), " ", output);
    const set = (next) => {
      input.value = next;
      tell();
    };
    return { field: element("div", { class: "live-field live-slide" }, head, input), set };
  }

  function button(text, pressed) {
    const made = element("button", { type: "button" }, text);
    made.addEventListener("click", pressed);
    return made;
  }

  /** A sentence that follows what the reader does: seen at once, and read aloud when they pause.

      It stays in the page, for an element that is made anew is read from its beginning, or not at all. */
  function sentence() {
    const said = element("p", { class: "live-said", "aria-live": "polite" });
    let pause;
    const say = (text) => {
      if (text === said.textContent) return;
      said.setAttribute("aria-busy", "true"); // not yet to be read: a drag says a hundred things
      said.textContent = text;
      clearTimeout(pause);
      pause = setTimeout(() => said.removeAttribute("aria-busy"), 400);
    };
    return { said, say };
  }

  /** A table whose second column is bars. `head`: the names of its columns, `null` for that of the bars, which say again
      what a number says. `rows`: {name, share, cells}, with a share of 0 ... 1 for the bar. */
  function bars(head, rows, colour = "query") {
    const th = (scope, text) => (text === null ? element("td") : element("th", { scope }, text));
    const body = rows.map(({ name, share, cells }) => {
      const bar = element("span", { class: "live-bar", style: `--weight: ${share.toFixed(4)}` });
      const numbers = cells.map((cell) => element("td", {}, cell));
      return element("tr", {}, th("row", name), element("td", {}, bar), ...numbers);
    });
    const top = element("thead", {}, element("tr", {}, ...head.map((text) => th("col", text))));
    return element("table", { class: `live-bars live-of-${colour}` }, top, element("tbody", {}, ...body));
  }

  /** Put a figure that needs no model in the place of its drawing, which stays for paper: it shows several states. */
  function replaceDrawing(figure, ...parts) {
    const drawing = figure.querySelector("svg");
    drawing.classList.add("live-on-paper");
    drawing.before(...parts);
  }

  /** A number with so many decimals, and with a true minus. */
  const fixed = (x, decimals = 2) => (Math.abs(x) < 0.5 * 10 ** -decimals ? 0 : x).toFixed(decimals).replace("-", "−");

  /** A text in quotation marks within a sentence; what is written from right to left turns nothing around it. */
  function quoted(token) {
    const named = token.replace(/\p{C}/gu, (c) => `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);
    return /[\u0590-\u08ff\ufb1d-\ufefc]/.test(named) ? `“\u2068${named}\u2069”` : `“${named}”`;
  }

  return { freshId, element, drawn, labelled, select, choice, slider, button, sentence, bars, replaceDrawing, fixed, quoted };
});
