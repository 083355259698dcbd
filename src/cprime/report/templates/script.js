(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const [ID, SIZE, SPREAD, BESIDE, FEATURES, ROWS] = [0, 1, 2, 3, 4, 5];
  const { clusters, places } = data;
  const map = document.getElementById("map"), panel = document.getElementById("panel");
  const ties = document.getElementById("ties");
  const marks = [...map.querySelectorAll(".mark")];
  const rows = [...document.querySelectorAll(".list tbody tr")];
  const words = rows.map(row => row.cells.length > 4 ? row.cells[4].textContent : "");
  const byId = new Map(clusters.map((cluster, i) => [cluster[ID], i]));
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let pinned = -1, current = -1;
  document.documentElement.classList.add("ready");
  map.setAttribute("role", "application");  // its keys are its own

  function made(name, text, className) {
    const node = document.createElement(name);
    if (text !== undefined) node.textContent = text;
    if (className) node.className = className;
    return node;
  }

  function tile(sheet, i, caption) {
    const figure = made("figure"), picture = made("div", undefined, "tile");
    const [wide, high] = sheet.tile, times = 104 / Math.max(wide, high);
    picture.style.width = `${wide * times}px`;
    picture.style.height = `${high * times}px`;
    picture.style.backgroundImage = `url("${sheet.uri}")`;
    picture.style.backgroundSize = `${sheet.width * times}px ${sheet.height * times}px`;
    const left = (i % sheet.columns) * wide * times, top = Math.floor(i / sheet.columns) * high * times;
    picture.style.backgroundPosition = `-${left}px -${top}px`;
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", `${caption} of cluster ${clusters[i][ID]}`);
    figure.append(picture, made("figcaption", caption));
    return figure;
  }

  function describe(i) {
    panel.replaceChildren();
    const cluster = clusters[i];
    panel.append(made("h3", `Cluster ${cluster[ID]}`));
    if (words[i]) panel.append(made("p", words[i]));
    panel.append(made("p", `Size ${cluster[SIZE]}, spread ${cluster[SPREAD]}.`, "note"));
    if (data.sheets.length) {
      const pair = made("div", undefined, "pair");
      pair.append(tile(data.sheets[0], i, "center"));
      if (cluster[ROWS].length) pair.append(tile(data.sheets[1], i, `row ${cluster[ROWS][0][0].toLocaleString("en")}`));
      panel.append(pair);
    }
    if (cluster[ROWS].length && cluster[FEATURES].length) {
      panel.append(made("h4", "Typical rows"));
      const table = made("table"), head = table.createTHead().insertRow();
      for (const name of ["row", ...cluster[ROWS].map(row => row[0].toLocaleString("en"))]) {
        const cell = made("th", name);
        cell.scope = "col";
        head.append(cell);
      }
      const body = table.createTBody();
      cluster[FEATURES].forEach((j, k) => {
        const line = body.insertRow(), name = made("th", data.names[j]);
        name.scope = "row";
        line.append(name, ...cluster[ROWS].map(row => made("td", row[k + 1])));
      });
      const holder = made("div", undefined, "scroll");
      holder.append(table);
      panel.append(holder);
    } else if (cluster[ROWS].length) {
      panel.append(made("p", `Typical rows: ${cluster[ROWS].map(row => row[0].toLocaleString("en")).join(", ")}.`));
    }
    if (cluster[BESIDE].length) {
      panel.append(made("h4", "Neighbors"));
      const list = made("div", undefined, "beside-list");
      for (const j of cluster[BESIDE]) {
        const button = made("button", String(clusters[j][ID]));
        button.type = "button";
        button.setAttribute("aria-label", `cluster ${clusters[j][ID]}`);
        button.addEventListener("click", () => pin(j, true));
        list.append(button);
      }
      panel.append(list);
    }
  }

  function show(i) {
    if (i < 0 || i === current) return;
    if (current >= 0) marks[current].classList.remove("here");
    current = i;
    if (i >= 0) marks[i].classList.add("here");
    describe(i);
  }

  function pin(i, moved) {
    if (pinned >= 0) for (const j of clusters[pinned][BESIDE]) marks[j].classList.remove("beside");
    ties.replaceChildren();
    pinned = i;
    map.classList.toggle("picked", i >= 0);
    if (i >= 0) {
      const [x, y] = places[i];
      for (const j of clusters[i][BESIDE]) {
        marks[j].classList.add("beside");
        const tie = document.createElementNS("http://www.w3.org/2000/svg", "path");
        tie.setAttribute("d", `M${x} ${y}L${places[j][0]} ${places[j][1]}`);
        ties.append(tie);
      }
      if (moved) reveal(i);
    }
    show(i);
    for (const row of document.querySelectorAll(".list tr.chosen")) row.classList.remove("chosen");
    if (i >= 0) rows[i].classList.add("chosen");
  }

  // Zoom: the view is a rectangle of the sheet.
  const [, , WIDE, HIGH] = map.getAttribute("viewBox").split(" ").map(Number);
  let view = [0, 0, WIDE, HIGH];
  function look(x, y, wide) {
    wide = Math.min(Math.max(wide, WIDE / 16), WIDE);
    const high = wide * HIGH / WIDE;
    view = [Math.min(Math.max(x, 0), WIDE - wide), Math.min(Math.max(y, 0), HIGH - high), wide, high];
    map.setAttribute("viewBox", view.join(" "));
    map.classList.toggle("near", wide < WIDE);
  }
  function zoom(factor, x = view[0] + view[2] / 2, y = view[1] + view[3] / 2) {
    const wide = Math.min(Math.max(view[2] * factor, WIDE / 16), WIDE), share = wide / view[2];
    look(x - (x - view[0]) * share, y - (y - view[1]) * share, wide);
  }
  function reveal(i) {
    const [x, y, r] = places[i];
    const inside = x - r > view[0] && x + r < view[0] + view[2] && y - r > view[1] && y + r < view[1] + view[3];
    if (!inside) look(x - view[2] / 2, y - view[3] / 2, view[2]);
  }
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => {
      const how = button.dataset.zoom;
      if (how === "all") look(0, 0, WIDE);
      else {
        const at = current >= 0 ? places[current] : [];
        zoom(how === "in" ? 0.6 : 1 / 0.6, at[0], at[1]);
      }
    });
  }

  function point(event) {
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
  }
  function nearest(event) {
    const at = point(event), reach = 14 * view[2] / map.clientWidth;
    let best = -1, least = reach;
    places.forEach(([x, y, r], i) => {
      const distance = Math.hypot(x - at.x, y - at.y) - r;
      if (distance < least) { least = distance; best = i; }
    });
    return best;
  }
  let held = null;
  map.addEventListener("pointerdown", event => {
    held = { x: event.clientX, y: event.clientY, view: [...view], moved: false };
  });
  map.addEventListener("pointermove", event => {
    if (held && view[2] < WIDE && event.buttons) {
      const scale = view[2] / map.clientWidth;
      const dx = (event.clientX - held.x) * scale, dy = (event.clientY - held.y) * scale;
      if (Math.hypot(event.clientX - held.x, event.clientY - held.y) > 5) held.moved = true;
      if (held.moved) { look(held.view[0] - dx, held.view[1] - dy, view[2]); return; }
    }
    const i = nearest(event);
    show(i >= 0 ? i : pinned);
  });
  map.addEventListener("pointerleave", () => { held = null; show(pinned); });
  map.addEventListener("click", event => {
    const dragged = held && held.moved;
    held = null;
    if (dragged) return;
    const i = nearest(event);
    pin(i === pinned ? -1 : i, false);
  });
  map.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const at = point(event);
    zoom(event.deltaY < 0 ? 0.85 : 1 / 0.85, at.x, at.y);
  }, { passive: false });

  const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  map.addEventListener("keydown", event => {
    if (event.key in ways) {
      event.preventDefault();
      const [dx, dy] = ways[event.key], [x, y] = places[current];
      let best = -1, least = Infinity;
      places.forEach(([a, b], i) => {
        const along = (a - x) * dx + (b - y) * dy, beside = Math.abs((a - x) * dy) + Math.abs((b - y) * dx);
        if (i !== current && along > 0 && along + 2 * beside < least) { least = along + 2 * beside; best = i; }
      });
      if (best >= 0) { show(best); reveal(best); }
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pin(current === pinned ? -1 : current, true);
    } else if (event.key === "Escape") pin(-1, false);
    else if (event.key === "+" || event.key === "=") zoom(0.6, ...(current >= 0 ? places[current] : []));
    else if (event.key === "-") zoom(1 / 0.6);
    else return;
  });

  // The table of clusters, and all links to a cluster.
  for (const link of document.querySelectorAll("a[data-id]")) {
    link.addEventListener("click", event => {
      event.preventDefault();
      const i = byId.get(Number(link.dataset.id));
      if (i === undefined) return;
      pin(i, true);
      map.scrollIntoView({ block: "center", behavior: still.matches ? "auto" : "smooth" });
    });
  }
  const filter = document.getElementById("filter"), found = document.getElementById("found");
  filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    let count = 0;
    rows.forEach((row, i) => {
      const fits = /^\d+$/.test(wanted) ? clusters[i][ID] === Number(wanted) : words[i].toLowerCase().includes(wanted);
      row.hidden = !fits;
      count += fits;
    });
    found.textContent = wanted ? `${count.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "";
  });

  // Fingerprints as a picture: what is under the pointer is read out.
  const heat = document.getElementById("heat");
  if (heat) {
    const z = Int8Array.from(atob(data.prints.z), letter => letter.charCodeAt(0) << 24 >> 24);
    const picture = heat.querySelector(".cells"), cell = document.getElementById("cell");
    const readout = document.getElementById("readout"), height = data.prints.rows.length, width = data.prints.names.length;
    let at = [0, 0];
    const word = value => {
      const size = Math.abs(value);
      return size < 0.5 ? "near the mean" : `${size >= 2 ? "very " : size < 1 ? "rather " : ""}${data.levels[value > 0 ? 0 : 1]}`;
    };
    const read = (row, column) => {
      at = [row, column];
      const value = z[row * width + column] / 16, [wide, high] = [picture.clientWidth / width, picture.clientHeight / height];
      const beyond = Math.abs(value) >= 127 / 16 ? "beyond " : "";
      const center = Number((data.prints.mean[column] + value * data.prints.deviation[column]).toPrecision(3));
      readout.textContent =
        `cluster ${clusters[data.prints.rows[row]][ID]}, ${data.prints.names[column]}: ${beyond}${value > 0 ? "+" : ""}${value.toFixed(1)} standard deviations (about ${center}), ${word(value)}`;
      cell.hidden = false;
      Object.assign(cell.style, {
        left: `${column * wide - 1.5}px`, top: `${row * high - 1.5}px`, width: `${wide + 3}px`, height: `${Math.max(high, 2) + 3}px`,
      });
    };
    const place = event => {
      const box = picture.getBoundingClientRect();
      const row = Math.floor((event.clientY - box.top) / box.height * height);
      const column = Math.floor((event.clientX - box.left) / box.width * width);
      return [Math.min(Math.max(row, 0), height - 1), Math.min(Math.max(column, 0), width - 1)];
    };
    picture.addEventListener("pointermove", event => read(...place(event)));
    picture.addEventListener("click", event => {
      const place_ = place(event);
      read(...place_);
      pin(data.prints.rows[place_[0]], true);
    });
    heat.addEventListener("keydown", event => {
      if (!(event.key in ways)) return;
      event.preventDefault();
      const [dx, dy] = ways[event.key];
      read(Math.min(Math.max(at[0] + dy, 0), height - 1), Math.min(Math.max(at[1] + dx, 0), width - 1));
      cell.scrollIntoView({ block: "nearest" });
    });
  }

  const sources = [map.querySelector("#sheet"), null];
  data.sheets.forEach((sheet, k) => { sheet.uri = sheet.uri || (sources[k] && sources[k].getAttribute("href")); });
  show(0);
})();
