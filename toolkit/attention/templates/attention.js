"use strict";
(() => {
  const {attentions, image} = JSON.parse(document.getElementById("data").textContent);
  const part = (id) => document.getElementById(id);
  const LARGEST_THUMBNAIL = 64;  // pixels; larger tables are shown by the largest share of each block
  const SMALLEST_LABELLED_CELL = 11;
  const ROLLOUT = "rollout", MEAN = "mean";
  const state = {tab: 0, layer: 0, head: 0, side: "query", place: 0, direction: "from",
                 withoutSpecial: false};

  // ---- weights

  function decode(attention) {
    const text = atob(attention.weights);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    attention.weights = null;
    if (attention.steps === 255) return bytes;
    const wide = new Uint16Array(bytes.length / 2);
    for (let i = 0; i < wide.length; i++) wide[i] = bytes[2 * i] | (bytes[2 * i + 1] << 8);
    return wide;
  }

  attentions.forEach((attention) => {
    attention.roots = decode(attention);
    attention.columns = attention.heads + attention.summaries.length;
    attention.same = attention.kind !== "cross";
  });

  const current = () => attentions[state.tab];

  /** Square roots of the shares of one head, between 0 and 1, row by row. */
  function root(attention, layer, head, query, key) {
    const q = attention.queries.labels.length, k = attention.keys.labels.length;
    const place = ((layer * attention.columns + head) * q + query) * k + key;
    return attention.roots[place] / attention.steps;
  }

  const share = (query, key) => root(current(), state.layer, state.head, query, key) ** 2;

  function headName(attention, head) {
    return head < attention.heads ? `head ${head + 1}` : attention.summaries[head - attention.heads];
  }

  // ---- colours and words

  /** A colour for every number from 0 to 1, between stops at equal distances. */
  function scale(stops) {
    const colours = Array.from({length: 256}, (_, i) => {
      const at = i / 255 * (stops.length - 1);
      const low = Math.min(Math.floor(at), stops.length - 2);
      return stops[low].map((c, part) => Math.round(c + (at - low) * (stops[low + 1][part] - c)));
    });
    return (value) => colours[Math.round(Math.min(Math.max(value, 0), 1) * 255)];
  }

  const colour = scale([[255, 255, 255], [0, 114, 178], [0, 43, 77]]);
  // Cividis, which is read alike with and without colour blindness (Nunez et al. 2018).
  const light = scale([[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119],
                       [200, 184, 102], [254, 232, 56]]);
  const css = (rgb) => `rgb(${rgb.join(",")})`;
  const inkOn = (value) => (value > 0.42 ? "#ffffff" : "#1c2128");

  function percent(value) {
    const points = 100 * value;
    if (points > 0 && points < 0.1) return "<0.1\u00a0%";
    return `${points.toFixed(points < 9.95 ? 1 : 0)}\u00a0%`;
  }

  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name in element && name !== "list") element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  function hidden(attention, query, key) {
    return state.withoutSpecial && (attention.keys.special[key] || attention.queries.special[query]);
  }

  // ---- all layers and heads

  /** A canvas with a pixel for every `block` x `block` shares: the largest of them. */
  function pixelsOf(attention, layer, head, block) {
    const q = attention.queries.labels.length, k = attention.keys.labels.length;
    const canvas = make("canvas", {width: Math.ceil(k / block), height: Math.ceil(q / block)});
    const pixels = new ImageData(canvas.width, canvas.height);
    const largest = new Float32Array(canvas.width * canvas.height);
    for (let query = 0; query < q; query++) {
      for (let key = 0; key < k; key++) {
        if (hidden(attention, query, key)) continue;
        const at = Math.floor(query / block) * canvas.width + Math.floor(key / block);
        const value = root(attention, layer, head, query, key);
        if (value > largest[at]) largest[at] = value;
      }
    }
    largest.forEach((value, i) => pixels.data.set([...colour(value), 255], 4 * i));
    canvas.getContext("2d").putImageData(pixels, 0, 0);
    return canvas;
  }

  function thumbnail(attention, layer, head) {
    const longest = Math.max(attention.queries.labels.length, attention.keys.labels.length);
    return pixelsOf(attention, layer, head, Math.ceil(longest / LARGEST_THUMBNAIL));
  }

  /** The share of every patch over the largest of them, and the largest. */
  function lights(attention, layer, head, token, direction) {
    const count = image.rows * image.columns, values = new Float32Array(count);
    for (let i = 0; i < count; i++) {
      const patch = image.first + i;
      const value = direction === "from" ? root(attention, layer, head, token, patch)
                                         : root(attention, layer, head, patch, token);
      values[i] = value * value;
    }
    const most = values.reduce((a, b) => Math.max(a, b), 0);
    return {most, values: values.map((value) => (most > 0 ? value / most : 0))};
  }

  function drawLight(canvas, values, opacity) {
    canvas.width = image.columns;
    canvas.height = image.rows;
    const pixels = new ImageData(canvas.width, canvas.height);
    values.forEach((value, i) => pixels.data.set([...light(value), Math.round(255 * opacity)], 4 * i));
    canvas.getContext("2d").putImageData(pixels, 0, 0);
  }

  function imageThumbnail(attention, layer, head) {
    const canvas = make("canvas");
    drawLight(canvas, lights(attention, layer, head, 0, "from").values, 0.6);
    return canvas;
  }

  function drawGrid() {
    const attention = current(), grid = part("grid");
    grid.replaceChildren();
    grid.style.setProperty("--columns", attention.columns);
    const names = make("div", {className: "maps"});
    for (let head = 0; head < attention.columns; head++) {
      const isHead = head < attention.heads, name = headName(attention, head);
      names.append(make("span", {title: name, className: isHead ? "" : "word"},
        isHead ? String(head + 1) : name));
    }
    const first = make("div", {className: "layer names", ariaHidden: "true"}, make("span", {}, "head"), names);
    grid.append(first);
    for (let layer = 0; layer < attention.layers; layer++) {
      const maps = make("div", {className: "maps"});
      for (let head = 0; head < attention.columns; head++) {
        const name = `Layer ${layer + 1}, ${headName(attention, head)}`;
        const button = make("button", {type: "button", title: name, ariaLabel: name,
          className: head < attention.heads ? "map" : "map summary"});
        button.dataset.layer = layer;
        button.dataset.head = head;
        if (image) button.append(make("span", {className: "behind"}), imageThumbnail(attention, layer, head));
        else button.append(thumbnail(attention, layer, head));
        maps.append(button);
      }
      grid.append(make("div", {className: "layer"}, make("span", {}, `Layer ${layer + 1}`), maps));
    }
    markChosenMap();
  }

  function markChosenMap() {
    for (const button of part("grid").querySelectorAll(".map")) {
      const chosen = +button.dataset.layer === state.layer && +button.dataset.head === state.head;
      button.setAttribute("aria-pressed", chosen);
      button.tabIndex = chosen ? 0 : -1;
    }
  }

  function chooseMap(layer, head) {
    state.layer = layer;
    state.head = head;
    markChosenMap();
    drawDetail();
  }

  part("grid").addEventListener("click", (event) => {
    const button = event.target.closest(".map");
    if (!button) return;
    chooseMap(+button.dataset.layer, +button.dataset.head);
    const box = part("detail").getBoundingClientRect();
    if (box.top > innerHeight * 0.6 || box.bottom < 0) part("detail").scrollIntoView();
  });

  part("grid").addEventListener("keydown", (event) => {
    const moves = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};
    const move = moves[event.key], button = event.target.closest(".map");
    if (!move || !button) return;
    const layer = +button.dataset.layer + move[0], head = +button.dataset.head + move[1];
    const next = part("grid").querySelector(`[data-layer="${layer}"][data-head="${head}"]`);
    if (next) next.focus();
    event.preventDefault();
  });

  // ---- one of them

  const sides = () => (current().same ? ["query"] : ["query", "key"]);
  const labelsOf = (side) => (side === "query" ? current().queries : current().keys);

  /** Shares that the chosen token gives or gets, and of which side the tokens are. */
  function shares(side, place) {
    const attention = current();
    const alongKeys = attention.same ? state.direction === "from" : side === "query";
    const tokens = alongKeys ? attention.keys : attention.queries;
    const values = tokens.labels.map((_, other) =>
      alongKeys ? share(place, other) : share(other, place));
    return {values, tokens, alongKeys};
  }

  function drawDetail() {
    const attention = current(), name = headName(attention, state.head);
    part("detail-title").textContent = `Layer ${state.layer + 1}, ${name}`;
    part("what").textContent = {
      [MEAN]: "The average of the heads of this layer.",
      [ROLLOUT]: "Attention followed through all layers up to this one.",
    }[name] || "";
    if (image) drawImage();
    else { drawFlows(); drawTable(); }
    show(state.side, state.place);
  }

  function drawFlows() {
    const flows = part("flows"), attention = current();
    flows.replaceChildren();
    for (const side of sides()) {
      const tokens = labelsOf(side), list = make("div", {className: "tokens"});
      tokens.labels.forEach((label, place) => {
        const chip = make("button", {type: "button", className: "token", dir: "auto",
          title: `token ${place + 1}`}, label, make("small"));
        chip.dataset.side = side;
        chip.dataset.place = place;
        if (tokens.special[place]) chip.classList.add("special");
        list.append(chip);
      });
      const names = {query: "The translation, as it is written", key: "The text it is made from"};
      const what = attention.same ? "Point at a token, or click to keep it" : names[side];
      flows.append(make("div", {className: "flow"}, make("p", {}, what), list));
    }
  }

  function show(side, place) {
    if (image) return showPatches(place);
    const attention = current(), {values, tokens, alongKeys} = shares(side, place);
    const coloured = attention.same ? "query" : alongKeys ? "key" : "query";
    for (const chip of part("flows").querySelectorAll(".token")) {
      const other = +chip.dataset.place, own = chip.dataset.side;
      chip.classList.toggle("chosen", own === side && other === place);
      const off = own !== coloured ||
        (state.withoutSpecial && tokens.special[other]);
      const value = off ? 0 : values[other], number = chip.querySelector("small");
      chip.style.background = off ? "" : css(colour(Math.sqrt(value)));
      chip.style.color = off ? "" : inkOn(Math.sqrt(value));
      number.textContent = !off && value >= 0.005 ? percent(value) : "";
    }
    const verb = alongKeys ? (attention.same ? "looks at" : "is written looking at") : "is looked at by";
    say(side, place, verb, values, tokens);
    drawTable(alongKeys ? {row: place} : {column: place});
  }

  /** A token, with its number where there are several like it. */
  function named(tokens, place) {
    const {labels} = tokens, label = labels[place];
    const several = labels.indexOf(label) !== labels.lastIndexOf(label);
    return make("b", {dir: "auto"}, label, several ? make("sub", {}, String(place + 1)) : "");
  }

  function say(side, place, verb, values, tokens) {
    const order = values.map((_, i) => i)
      .filter((i) => !(state.withoutSpecial && tokens.special[i]))
      .sort((a, b) => values[b] - values[a]).slice(0, 5).filter((i) => values[i] >= 0.0005);
    const readout = part("readout");
    readout.replaceChildren(named(labelsOf(side), place), ` ${verb} `);
    if (!order.length) readout.append("nothing that is shown");
    order.forEach((i, number) => {
      readout.append(number ? ", " : "", named(tokens, i), ` ${percent(values[i])}`);
    });
  }

  // ---- the table of a head

  const table = {cell: 0, left: 0, top: 0, drawn: "", canvas: null};

  function tableOf(attention) {
    const drawn = [state.tab, state.layer, state.head, state.withoutSpecial].join();
    if (drawn !== table.drawn) {
      table.canvas = pixelsOf(attention, state.layer, state.head, 1);
      table.drawn = drawn;
    }
    return table.canvas;
  }

  function measure(context, labels) {
    return Math.min(Math.max(...labels.map((label) => context.measureText(label).width)), 110) + 8;
  }

  function drawTable(mark) {
    const attention = current(), canvas = part("heat"), context = canvas.getContext("2d");
    const q = attention.queries.labels.length, k = attention.keys.labels.length;
    const family = getComputedStyle(document.body).fontFamily;
    const room = part("table").clientWidth || 320;
    let size = 12;
    context.font = `${size}px ${family}`;
    let left = measure(context, attention.queries.labels), top = measure(context, attention.keys.labels);
    let cell = Math.min((room - left) / k, 30);
    const labelled = cell >= SMALLEST_LABELLED_CELL;
    if (!labelled) { left = top = 0; cell = Math.max(room / k, 3); }
    cell = Math.max(Math.floor(cell), 3);
    size = Math.min(13, cell - 1);
    Object.assign(table, {cell, left, top});
    const scale = devicePixelRatio || 1, width = left + cell * k, height = top + cell * q;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(tableOf(attention), left, top, cell * k, cell * q);
    context.strokeStyle = "#d5dbe1";
    context.strokeRect(left + 0.5, top + 0.5, cell * k - 1, cell * q - 1);
    if (labelled) writeLabels(context, attention, family, size);
    if (mark) markTable(context, mark, q, k);
    canvas.setAttribute("aria-label", `Table of ${part("detail-title").textContent}: ${q} rows, ${k} columns`);
  }

  function writeLabels(context, attention, family, size) {
    const {cell, left, top} = table;
    context.font = `${size}px ${family}`;
    context.fillStyle = "#1c2128";
    context.textBaseline = "middle";
    context.textAlign = "right";
    attention.queries.labels.forEach((label, i) =>
      context.fillText(label, left - 4, top + (i + 0.5) * cell, left - 6));
    context.textAlign = "left";
    attention.keys.labels.forEach((label, i) => {
      context.save();
      context.translate(left + (i + 0.5) * cell, top - 4);
      context.rotate(-Math.PI / 2);
      context.fillText(label, 0, 0, top - 6);
      context.restore();
    });
  }

  function markTable(context, {row, column}, q, k) {
    const {cell, left, top} = table;
    context.strokeStyle = "#b34a00";
    context.lineWidth = 2;
    if (row !== undefined) context.strokeRect(left, top + row * cell, cell * k, cell);
    if (column !== undefined) context.strokeRect(left + column * cell, top, cell, cell * q);
  }

  function cellAt(event) {
    const box = part("heat").getBoundingClientRect(), attention = current();
    const key = Math.floor((event.clientX - box.left - table.left) / table.cell);
    const query = Math.floor((event.clientY - box.top - table.top) / table.cell);
    const inside = key >= 0 && query >= 0 && key < attention.keys.labels.length &&
      query < attention.queries.labels.length;
    return inside ? {query, key} : null;
  }

  part("heat").addEventListener("mousemove", (event) => {
    const at = cellAt(event);
    if (!at) return;
    const attention = current();
    drawTable({row: at.query, column: at.key});
    part("readout").replaceChildren(
      named(attention.queries, at.query), " looks at ", named(attention.keys, at.key),
      `: ${percent(share(at.query, at.key))}`);
  });
  part("heat").addEventListener("mouseleave", () => show(state.side, state.place));
  part("heat").addEventListener("click", (event) => {
    const at = cellAt(event);
    if (at) keep("query", at.query);
  });

  function keep(side, place) {
    state.side = side;
    state.place = place;
    show(side, place);
  }

  // ---- pointing at tokens

  const chipOf = (event) => event.target.closest(".token");
  part("flows").addEventListener("mouseover", (event) => {
    const chip = chipOf(event);
    if (chip) show(chip.dataset.side, +chip.dataset.place);
  });
  part("flows").addEventListener("mouseleave", () => show(state.side, state.place));
  for (const kind of ["click", "focusin"]) {
    part("flows").addEventListener(kind, (event) => {
      const chip = chipOf(event);
      if (chip) keep(chip.dataset.side, +chip.dataset.place);
    });
  }

  // ---- images

  function drawImage() {
    const {src} = part("image");
    if (!src) part("image").src = image.source;
    part("image").classList.toggle("pixels", Math.max(image.width, image.height) < 200);
  }

  function showPatches(token) {
    const attention = current(), found = lights(attention, state.layer, state.head, token, state.direction);
    drawLight(part("light"), found.values, part("opacity").value / 100);
    part("light").className = "pixels";
    part("frame").hidden = token < image.first;
    if (token >= image.first) outline(token - image.first);
    const {values, tokens, alongKeys} = shares("query", token);
    say("query", token, alongKeys ? "looks at" : "is looked at by", values, tokens);
    part("readout").append(`. Patches are (row, column); yellow is ${percent(found.most)}.`);
    for (const chip of part("flows").querySelectorAll(".token")) {
      chip.classList.toggle("chosen", +chip.dataset.place === token);
    }
  }

  /** A frame around a patch: the canvas has a pixel a patch, so the frame is an element. */
  function outline(patch) {
    const frame = part("frame"), row = Math.floor(patch / image.columns), column = patch % image.columns;
    Object.assign(frame.style, {
      left: `${100 * column / image.columns}%`, top: `${100 * row / image.rows}%`,
      width: `${100 / image.columns}%`, height: `${100 / image.rows}%`,
    });
  }

  function prepareImage() {
    part("picture").hidden = false;
    part("table").hidden = part("hide").hidden = part("legend").hidden = true;
    document.body.style.setProperty("--image", `url("${image.source}")`);
    document.body.style.setProperty("--ratio", `${image.width} / ${image.height}`);
    part("grid").classList.toggle("pixels", Math.max(image.width, image.height) < 200);
    const shown = attentions[0].queries.labels.length;
    part("directions").hidden = shown < attentions[0].keys.labels.length;
    const list = make("div", {className: "tokens"});
    for (let place = 0; place < Math.min(image.first, shown); place++) {
      const chip = make("button", {type: "button", className: "token special"},
        attentions[0].keys.labels[place]);
      chip.dataset.side = "query";
      chip.dataset.place = place;
      list.append(chip);
    }
    part("flows").append(make("div", {className: "flow"}, list));
    part("light").addEventListener("click", (event) => {
      const box = part("light").getBoundingClientRect();
      const column = Math.floor((event.clientX - box.left) / box.width * image.columns);
      const row = Math.floor((event.clientY - box.top) / box.height * image.rows);
      const token = image.first + row * image.columns + column;
      if (token < shown) keep("query", token);
    });
  }

  // ---- what holds for all of them

  function chooseTab(number) {
    state.tab = number;
    const attention = current();
    state.layer = Math.min(state.layer, attention.layers - 1);
    state.head = Math.min(state.head, attention.columns - 1);
    state.side = "query";
    const ordinary = attention.queries.labels.findIndex((label, i) =>
      !attention.queries.special[i] && label !== "\u2423");
    state.place = image ? 0 : Math.max(ordinary, 0);
    document.querySelectorAll("[role=tab]").forEach((tab, i) => {
      tab.setAttribute("aria-selected", i === number);
      tab.tabIndex = i === number ? 0 : -1;
    });
    if (document.querySelector("[role=tab]")) part("view").setAttribute("aria-labelledby", `tab-${number}`);
    part("caption").textContent = attention.caption;
    if (!image) part("directions").hidden = !attention.same;
    drawGrid();
    drawDetail();
  }

  document.querySelectorAll("[role=tab]").forEach((tab, i, all) => {
    tab.addEventListener("click", () => chooseTab(i));
    tab.addEventListener("keydown", (event) => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!step) return;
      const next = (i + step + all.length) % all.length;
      chooseTab(next);
      all[next].focus();
    });
  });

  part("directions").addEventListener("change", (event) => {
    state.direction = event.target.value;
    show(state.side, state.place);
  });
  part("without-special").addEventListener("change", (event) => {
    state.withoutSpecial = event.target.checked;
    drawGrid();
    drawDetail();
  });
  part("opacity").addEventListener("input", () => show(state.side, state.place));
  part("strength").hidden = !image;
  addEventListener("resize", () => { if (!image) show(state.side, state.place); });

  part("legend").append("share");
  for (const value of [0, 0.01, 0.05, 0.1, 0.25, 0.5, 1]) {
    const stop = make("span", {}, `${100 * value} %`);
    stop.style.background = css(colour(Math.sqrt(value)));
    stop.style.color = inkOn(Math.sqrt(value));
    part("legend").append(stop);
  }

  if (image) prepareImage();
  chooseTab(attentions.findIndex(({kind}) => kind === "cross") >= 0
    ? attentions.findIndex(({kind}) => kind === "cross") : 0);
})();
