"use strict";
(() => {
  const D = JSON.parse(document.getElementById("data").textContent);
  const P = D.program || {}, R = D.run || {};
  const kernels = (D.emulator && D.emulator.kernels) || [];
  const byId = id => document.getElementById(id);

  // --- elements ---------------------------------------------------------
  const add = (parent, name, attributes, text) => {
    const e = document.createElement(name);
    for (const [k, v] of Object.entries(attributes || {}))
      e.setAttribute(k, v);
    if (text !== undefined)
      e.textContent = text;
    parent.append(e);
    return e;
  };
  const svgAdd = (parent, name, attributes, text) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [k, v] of Object.entries(attributes || {}))
      e.setAttribute(k, v);
    if (text !== undefined)
      e.textContent = text;
    parent.append(e);
    return e;
  };
  let pictures = 0;
  const picture = (parent, width, height, title, description) => {
    const box = add(parent, "div", {
      class : "scroll",
      tabindex : "0",
      role : "group",
      "aria-label" : title
    });
    const id = "picture" + pictures++;
    const svg = svgAdd(box, "svg", {
      width,
      height,
      viewBox : `0 0 ${width} ${height}`,
      role : "img",
      "aria-labelledby" : `${id}t ${id}d`
    });
    svgAdd(svg, "title", {id : id + "t"}, title);
    svgAdd(svg, "desc", {id : id + "d"}, description);
    return svg;
  };
  const number = n =>
      typeof n === "number"
          ? n.toLocaleString("en-US", {maximumFractionDigits : 3})
          : String(n);
  const table = (parent, caption, heads, rows) => {
    const box = add(parent, "div", {
      class : "scroll",
      tabindex : "0",
      role : "group",
      "aria-label" : caption
    });
    const t = add(box, "table");
    add(t, "caption", {}, caption);
    const head = add(add(t, "thead"), "tr");
    for (const h of heads)
      add(head, "th", {scope : "col"}, h);
    const body = add(t, "tbody");
    for (const row of rows) {
      const tr = add(body, "tr");
      row.forEach((cell, i) => {
        if (i === 0)
          add(tr, "th", {scope : "row"}, number(cell));
        else
          add(tr, "td", typeof cell === "number" ? {class : "n"} : {},
              cell === undefined ? "" : number(cell));
      });
    }
    return t;
  };

  // --- stages and their links -------------------------------------------
  const titles = {
    problem : "Problem",
    tile : "Tile program",
    scheduled : "Scheduled form",
    thread : "Lanes' code",
    target : "Target stage",
    asm : "Instructions"
  };
  const stages =
      (P.stages ||
       []).map(s => ({...s, lines : s.text.replace(/\n$/, "").split("\n")}));
  const stageOf = name => stages.find(s => s.name === name);
  const main = stageOf("tile") || stageOf("scheduled") || stages[0];
  const target = stageOf("target");
  // Line of the target stage -> lines of the main stage.
  const mainLines = new Map();
  if (main && target)
    for (const op of target.ops)
      mainLines.set(op.line,
                    main === target ? [ op.line ] : op.from[main.name] || []);
  // Line of the main stage -> stage -> its lines.
  const later = new Map();
  const note = (line, stage, what) => {
    if (!later.has(line))
      later.set(line, {});
    const of = later.get(line);
    (of[stage] = of[stage] || []).push(what);
  };
  if (main)
    for (const s of stages.slice(stages.indexOf(main) + 1))
      for (const op of s.ops) {
        const from =
            s.name === "asm"
                ? (op.from.target || []).flatMap(l => mainLines.get(l) || [])
                : op.from[main.name] || [];
        for (const l of new Set(from))
          note(l, s.name, op);
      }
  const lineOf = location => {
    const m = /^kvbuf-target:(\d+):/.exec(location || "");
    return m ? +m[1] : 0;
  };
  // Line of the main stage -> what the emulator executed.
  const executed = new Map();
  for (const k of kernels)
    for (const op of k.operations || [])
      for (const l of mainLines.get(lineOf(op.location)) || []) {
        if (!executed.has(l))
          executed.set(l, new Map());
        const of = executed.get(l), key = op.op;
        const sum =
            of.get(key) || {op : key, kind : op.class, warp : 0, lane : 0};
        sum.warp += op.warp;
        sum.lane += op.lane;
        of.set(key, sum);
      }
  const mainText = line =>
      main && main.lines[line - 1] ? main.lines[line - 1].trim() : "";
  const describe = location => {
    const lines = mainLines.get(lineOf(location)) || [];
    return lines.length
               ? `line ${lines[0]}: ${mainText(lines[0])}`.slice(0, 110)
               : location || "";
  };

  // --- summary ----------------------------------------------------------
  const name = R.kernel || "kernel";
  document.title = `${name} for ${P.chip} (kvbuf)`;
  byId("title").textContent = `${name} for ${P.chip}`;
  byId("subtitle").textContent =
      `${R.file || ""}${R.sizes ? ", on the emulator: " + R.sizes : ""}`;
  const facts = [ [ "Chip", P.chip ], [ "Compiler", "kvbuf " + P.version ] ];
  for (const k of P.kernels || []) {
    if (k.schedule)
      facts.push([ `Schedule of ${k.name}`, k.schedule ]);
  }
  for (const r of P.resources || [])
    facts.push([
      `${r.name} takes`,
      [
        [ "threads", r.threads ], [ "registers", r.registers ],
        [ "bytes spilled", r.spill_bytes ],
        [
          "bytes of shared memory",
          (r.static_shared_bytes || 0) + (r.dynamic_shared_bytes || 0)
        ]
      ].filter(x => x[1] !== undefined)
          .map(x => `${number(x[1])} ${x[0]}`)
          .join(", ")
    ]);
  if (R.fault)
    facts.push([ "Fault", R.fault ]);
  if (R.bench)
    facts.push([
      "Measured",
      `median ${number(R.bench.median_s * 1e6)} microseconds on ${R.device}`
    ]);
  for (const [k, v] of facts) {
    add(byId("facts"), "dt", {}, k);
    add(byId("facts"), "dd", {}, v);
  }
  byId("made").textContent =
      `Made by kvbuf ${P.version}. The page loads nothing from a network.`;

  // --- program ----------------------------------------------------------
  const buttons = [];
  const show = button => {
    for (const b of buttons)
      b.setAttribute("aria-pressed", String(b === button));
    const line = +button.dataset.line, body = byId("detailbody");
    body.replaceChildren();
    add(body, "p", {},
        `Line ${line} of the ${titles[main.name].toLowerCase()}: `);
    add(body, "pre", {tabindex : "0"}, mainText(line));
    const counts = [...(executed.get(line) || new Map()).values() ];
    if (counts.length)
      table(body, "Executed on the emulator",
            [ "operation", "class", "by warps", "by lanes" ],
            counts.map(c => [c.op, c.kind, c.warp, c.lane]));
    const of = later.get(line) || {};
    for (const s of stages.slice(stages.indexOf(main) + 1)) {
      const ops = of[s.name] || [];
      add(body, "h4", {},
          `${titles[s.name]}: ${ops.length} ${
              ops.length === 1 ? "line" : "lines"}`);
      if (!ops.length)
        continue;
      const list = add(body, "ol", {
        class : "code",
        style : "max-height:16rem",
        tabindex : "0",
        "aria-label" : titles[s.name]
      });
      for (const op of ops.slice(0, 300))
        add(list, "li", {value : op.line}, s.lines[op.line - 1]);
      if (ops.length > 300)
        add(body, "p", {}, `and ${ops.length - 300} more lines`);
    }
  };
  if (main) {
    byId("h-main").textContent = titles[main.name];
    const known = new Set(main.ops.map(o => o.line));
    main.lines.forEach((text, i) => {
      const li = add(byId("mainstage"), "li", {value : i + 1});
      const of = later.get(i + 1);
      if (!known.has(i + 1) || !of) {
        li.textContent = text;
        return;
      }
      const b =
          add(li, "button",
              {type : "button", "aria-pressed" : "false", "data-line" : i + 1},
              text);
      b.addEventListener("click", () => show(b));
      b.addEventListener("keydown", e => {
        const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
        const next = step && buttons[buttons.indexOf(b) + step];
        if (next) {
          e.preventDefault();
          next.focus();
        }
      });
      buttons.push(b);
    });
  }
  for (const s of stages) {
    const d = add(byId("stages"), "details");
    add(d, "summary", {}, `${titles[s.name]}, ${number(s.lines.length)} lines`);
    const pre = add(d, "pre", {tabindex : "0", "aria-label" : titles[s.name]});
    d.addEventListener("toggle", () => {
      if (d.open && !pre.textContent)
        pre.textContent = s.text;
    });
  }

  // --- shared memory ----------------------------------------------------
  const traceOf = kernel => (kernels.find(k => k.entry === kernel) || {}).trace;
  const drawBuffer = (parent, buffer, trace) => {
    const figure = add(parent, "figure");
    const rowName = buffer.turned ? "column" : "row",
          groupName = buffer.turned ? "rows" : "columns";
    add(figure, "figcaption", {},
        `${buffer.name}: ${buffer.slots} ${
            buffer.slots === 1
                ? "slot"
                : "slots"} of ${buffer.rows} x ${buffer.cols} elements of ${
            buffer.element_bytes} bytes, from byte ${number(buffer.offset)}` +
            (buffer.swizzle ? `, swizzle (${buffer.swizzle.join(", ")})`
             : buffer.turned ? ", transposed on its way"
                             : ", no swizzle"));
    const accesses = [];
    // What a swizzle moves: a vector; a trace's units are as large, or smaller.
    const bytes = buffer.vector_bytes;
    const units = trace ? bytes / trace.unit_bytes : 1;
    const first = buffer.offset / bytes, perSlot = buffer.slot_bytes / bytes;
    const merged = new Map();
    for (const s of (trace && trace.shared) || []) {
      const inside = [];
      for (let i = 0; i < s.units.length; i += 2)
        for (let u = s.units[i]; u <= s.units[i + 1]; ++u) {
          const v = Math.floor(u / units) - first;
          if (v >= 0 && v < perSlot * buffer.slots)
            inside.push(v);
        }
      if (!inside.length)
        continue;
      const op = trace.ops[s.op], who = describe(op.location);
      const key = `${who}|${op.op}|${s.store}`;
      if (!merged.has(key))
        merged.set(key, {who, op : op.op, store : s.store, warps : new Map()});
      const of = merged.get(key).warps;
      if (!of.has(s.warp))
        of.set(s.warp, new Set());
      for (const v of inside)
        of.get(s.warp).add(v);
    }
    for (const m of merged.values())
      accesses.push(m);
    accesses.sort((a, b) => b.store - a.store);

    const controls = add(figure, "p");
    const label = add(controls, "label", {}, "Mark ");
    const select = add(label, "select");
    add(select, "option", {value : "-1"}, "nothing");
    accesses.forEach((a, i) => {
      for (const w of [...a.warps.keys()].sort((x, y) => x - y))
        add(select, "option", {value : `${i}:${w}`},
            `${a.store ? "written" : "read"} by warp ${w}, ${a.op}, ${a.who}`);
    });
    const slotLabel = add(controls, "label", {}, " of slot ");
    const slotSelect = add(slotLabel, "select");
    for (let s = 0; s < buffer.slots; ++s)
      add(slotSelect, "option", {value : s}, String(s));
    const more =
        add(controls, "button",
            {type : "button", class : "plain", "aria-expanded" : "false"},
            "All rows");
    const holder = add(figure, "div");
    let all = false;
    const draw = () => {
      holder.replaceChildren();
      const rows = all ? buffer.vectors.length
                       : Math.min(16, buffer.vectors.length),
            groups = buffer.vectors[0].length;
      const [a, w] = select.value.split(":").map(Number),
                slot = +slotSelect.value;
      const marked = a >= 0 ? accesses[a].warps.get(w) : new Set();
      let on = 0;
      const cw = 34, ch = 20, left = 60, top = 34,
            inVector = bytes / buffer.element_bytes, banks = P.banks || 32;
      const svg = picture(
          holder, left + groups * cw + 10, top + rows * ch + 10,
          `Banks of ${buffer.name}`,
          `${rows} of ${buffer.vectors.length} ${rowName}s; in each cell of ${
              inVector} ${groupName} the first bank of its ${
              bytes} bytes.`);
      for (let g = 0; g < groups; ++g)
        svgAdd(svg, "text", {x : left + g * cw + 4, y : top - 6},
               String(g * inVector));
      svgAdd(svg, "text", {x : left, y : 12}, groupName);
      for (let r = 0; r < rows; ++r) {
        svgAdd(svg, "text", {x : 2, y : top + r * ch + 14}, `${rowName} ${r}`);
        for (let g = 0; g < groups; ++g) {
          const v = buffer.vectors[r][g], bank = v * (bytes / 4) % banks,
                isOn = marked.has(slot * perSlot + v);
          on += isOn;
          svgAdd(svg, "rect", {
            class : `cell ${bank % 8 ? "b1" : ""} ${isOn ? "on" : ""}`,
            x : left + g * cw,
            y : top + r * ch,
            width : cw - 1,
            height : ch - 1
          });
          svgAdd(svg, "text", {x : left + g * cw + 5, y : top + r * ch + 14},
                 String(bank));
          if (isOn)
            svgAdd(svg, "circle", {
              class : "dot",
              cx : left + g * cw + cw - 8,
              cy : top + r * ch + 9,
              r : 3
            });
        }
      }
      if (a >= 0)
        add(holder, "p", {role : "status"},
            `${number(on * bytes)} bytes of the shown rows are ${
                accesses[a].store ? "written" : "read"} there.`);
    };
    select.addEventListener("change", draw);
    slotSelect.addEventListener("change", draw);
    more.addEventListener("click", () => {
      all = !all;
      more.setAttribute("aria-expanded", String(all));
      more.textContent = all ? "First rows" : "All rows";
      draw();
    });
    draw();
    if (accesses.length)
      table(
          figure, `Who writes and reads ${buffer.name}, in the emulated block`,
          [ "what", "how", "operation", "warps", "bytes" ],
          accesses.map(
              x => [x.who, x.store ? "writes" : "reads", x.op,
                    [...x.warps.keys() ].sort((p, q) => p - q).join(", "),
                    new Set([...x.warps.values() ].flatMap(s => [...s])).size *
                        16]));
  };
  let drawn = 0;
  for (const k of P.kernels || [])
    for (const buffer of k.lds || []) {
      drawBuffer(byId("buffers"), buffer, traceOf(k.name));
      ++drawn;
    }
  if (!drawn)
    add(byId("buffers"), "p", {},
        "The kernel has no buffer in shared memory whose elements have known places.");

  // --- timeline ---------------------------------------------------------
  const drawTimeline = (parent, entry, t) => {
    add(parent, "h3", {}, `${entry}, ${t.block}`);
    add(parent, "p", {},
        "Time is the number of instructions that a warp has executed; where it waits for others, its clock goes forward to the last of them. The emulator knows no cycles." +
            (t.truncated ? " There were more events than are noted here."
                         : ""));
    const legend = [
      [
        "copy",
        "copy in flight: outlined bar, from its issue to the wait that makes it visible"
      ],
      [ "product", "products: filled bar" ], [ "wait", "waiting: hatched bar" ],
      [ "barrier", "at a barrier: dashed bar" ]
    ];
    const list = add(parent, "ul");
    for (const [, text] of legend)
      add(list, "li", {}, text);
    const controls = add(parent, "p"), holder = add(parent, "div");
    let zoom = 1;
    const tracks = {copy : 0, product : 1, wait : 2, barrier : 2};
    const draw = () => {
      holder.replaceChildren();
      const left = 90, width = 1000 * zoom, th = 9, wh = 3 * th + 8, top = 22,
            length = Math.max(t.length, 1);
      const svg = picture(
          holder, left + width + 20, top + t.warps * wh + 8,
          `Timeline of ${t.block}`,
          `${t.warps} warps over ${
              number(
                  t.length)} instructions; the table after it has the sums.`);
      const defs = svgAdd(svg, "defs"), hatch = svgAdd(defs, "pattern", {
                                          id : "hatch",
                                          width : 5,
                                          height : 5,
                                          patternUnits : "userSpaceOnUse"
                                        });
      svgAdd(hatch, "path", {d : "M0 5L5 0", fill : "none"});
      for (let i = 0; i <= 10 * zoom; ++i) {
        const x = left + i * 100;
        svgAdd(svg, "line", {
          class : "grid",
          x1 : x,
          x2 : x,
          y1 : top - 4,
          y2 : top + t.warps * wh
        });
        svgAdd(svg, "text", {x : x + 2, y : 12},
               number(Math.round(length * i / (10 * zoom))));
      }
      for (let w = 0; w < t.warps; ++w)
        svgAdd(svg, "text", {x : 2, y : top + w * wh + 16},
               t.warps > t.warps_per_block
                   ? `block ${Math.floor(w / t.warps_per_block)} warp ${
                         w % t.warps_per_block}`
                   : `warp ${w}`);
      for (const e of t.events) {
        const x = left + width * e.begin / length,
              y = top + e.warp * wh + tracks[e.kind] * th;
        const r = svgAdd(svg, "rect", {
          class : e.kind,
          x,
          y : y + 1,
          width : Math.max(width * (e.end - e.begin) / length, 0.8),
          height : th - 2
        });
        svgAdd(r, "title", {},
               `${e.kind}, warp ${e.warp}, ${number(e.begin)} to ${
                   number(e.end)}` +
                   (e.bytes ? `, ${number(e.bytes)} bytes` : "") +
                   (e.count > 1 ? `, ${e.count} instructions` : "") +
                   `, ${t.ops[e.op].op}, ${describe(t.ops[e.op].location)}`);
      }
    };
    for (const [text, factor] of [[ "Zoom in", 2 ], [ "Zoom out", 0.5 ]]) {
      const b =
          add(controls, "button", {type : "button", class : "plain"}, text);
      b.addEventListener("click", () => {
        zoom = Math.min(32, Math.max(1, zoom * factor));
        draw();
      });
      controls.append(" ");
    }
    draw();
    const rows = [];
    for (let w = 0; w < t.warps; ++w) {
      const of = k => t.events.filter(e => e.warp === w && e.kind === k),
            sum = (l, f) => l.reduce((s, e) => s + f(e), 0);
      rows.push([
        `warp ${w}`, sum(of("copy"), e => e.count),
        sum(of("copy"), e => e.bytes || 0), sum(of("product"), e => e.count),
        sum(of("wait"), e => e.end - e.begin), of("barrier").length,
        sum(of("barrier"), e => e.end - e.begin)
      ]);
    }
    table(parent, "Sums by warp",
          [
            "warp", "copies", "bytes copied", "products",
            "instructions of others waited for", "barriers",
            "instructions waited for at barriers"
          ],
          rows);
    const d = add(parent, "details");
    add(d, "summary", {},
        `Events (${number(Math.min(500, t.events.length))} of ${
            number(t.events.length)})`);
    d.addEventListener("toggle", () => {
      if (!d.open || d.querySelector("table"))
        return;
      table(d, "Events in order",
            [
              "begin", "end", "warp", "kind", "instructions", "bytes",
              "operation", "what"
            ],
            t.events.slice(0, 500).map(
                e => [e.begin, e.end, e.warp, e.kind, e.count, e.bytes,
                      t.ops[e.op].op, describe(t.ops[e.op].location)]));
    });
  };
  let timelines = 0;
  for (const k of kernels)
    if (k.trace) {
      drawTimeline(byId("time"), k.entry, k.trace);
      ++timelines;
    }
  if (!timelines)
    add(byId("time"), "p", {},
        "The kernel was not run: it is no problem that kvbuf-run knows, so that nothing says what to run it on.");

  // --- registers --------------------------------------------------------
  for (const k of P.kernels || []) {
    const points = k.registers || [];
    if (!points.length)
      continue;
    const most = Math.max(...points.map(p => p[1])), w = 1000, h = 220,
          left = 50;
    const told = (P.resources || []).find(r => r.name === k.name);
    add(byId("regs"), "h3", {}, k.name);
    add(byId("regs"), "p", {},
        `Registers of 32 bits that a lane's values need before each operation of the innermost loop with the most operations, at the target stage; at most ${
            most}.` +
            (told && told.registers !== undefined
                 ? ` The finished code takes ${told.registers}, and spills ${
                       told.spill_bytes} bytes.`
                 : ""));
    const svg = picture(
        byId("regs"), left + w + 10, h + 40,
        `Registers over the loop of ${k.name}`,
        `A curve over ${points.length} operations with a maximum of ${most}.`);
    const x = i => left + w * i / Math.max(points.length - 1, 1),
          y = v => 10 + h * (1 - v / Math.max(most, 1));
    for (let i = 0; i <= 4; ++i) {
      const v = Math.round(most * i / 4);
      svgAdd(svg, "line",
             {class : "grid", x1 : left, x2 : left + w, y1 : y(v), y2 : y(v)});
      svgAdd(svg, "text", {x : 4, y : y(v) + 4}, String(v));
    }
    svgAdd(svg, "path", {
      class : "curve",
      d : points
              .map((p, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${
                       y(p[1]).toFixed(1)}`)
              .join("")
    });
    svgAdd(svg, "text", {x : left, y : h + 30},
           `operations of the loop, 0 to ${points.length}`);
    const by = new Map();
    for (const [line, n] of points) {
      const who = describe(`kvbuf-target:${line}:1`);
      by.set(who, Math.max(by.get(who) || 0, n));
    }
    table(byId("regs"), "Most registers within what each operation became",
          [ "operation", "registers" ],
          [...by ].sort((a, b) => b[1] - a[1]).slice(0, 40));
  }
  if (!byId("regs").children.length)
    add(byId("regs"), "p", {}, "The kernel has no loop.");

  // --- roofline ---------------------------------------------------------
  (() => {
    const roof = byId("roof"), peaks = P.peaks || [];
    const bench = R.bench, flop = bench ? bench.flop : R.flop,
          bytes = bench ? bench.bytes : R.bytes;
    const peak =
        (bench && peaks.find(p => (R.device || "").includes(p.device))) ||
        peaks[0];
    if (!peak || !(flop > 0) || !(bytes > 0)) {
      add(roof, "p", {},
          "There is nothing to draw: " +
              (!peak
                   ? "no device with this chip has known peaks."
                   : "the problem counts no floating-point operations, or was not run."));
      return;
    }
    const intensity = flop / bytes,
          bound = Math.min(peak.matrix_flops, intensity * peak.memory_bytes);
    const isa = P.isa && P.isa.kernels && P.isa.kernels[0],
          hot = isa && isa.loops.find(l => l.hot);
    // The order of a wave's instructions, or what waves share.
    const share = hot && Math.min(hot.mfma_share, hot.unit_cycles.mfma_share || 1);
    const points = [];
    if (bench)
      points.push([ "measured", flop / bench.median_s, "on " + R.device ]);
    else if (hot)
      points.push([
        "modelled", Math.min(bound, share * peak.matrix_flops),
        `an issue model of the hot loop, ${
            number(100 * share)} % of its cycles with products; not measured`
      ]);
    add(roof, "p", {},
        `The problem asks for ${
            number(
                intensity)} operations a byte that any implementation has to move. On a ${
            peak.device} (${number(peak.matrix_flops / 1e12)} TFLOP/s, ${
            number(peak.memory_bytes / 1e9)} GB/s by its maker) ` +
            `${
                intensity * peak.memory_bytes < peak.matrix_flops
                    ? "memory"
                    : "the matrix unit"} bounds it, at ${
                number(bound / 1e12)} TFLOP/s.` +
            (points.length
                 ? ""
                 : " Nothing was timed: the emulator knows no time, and there is no model of this chip."));
    const w = 700, h = 360, left = 60, xs = [ 0.1, 1e5 ],
          ys = [ peak.matrix_flops / 1e4, peak.matrix_flops * 2 ];
    const lx = v => left + w * Math.log(v / xs[0]) / Math.log(xs[1] / xs[0]),
          ly = v =>
              10 + h * (1 - Math.log(v / ys[0]) / Math.log(ys[1] / ys[0]));
    const clampX = v => Math.min(Math.max(v, xs[0]), xs[1]),
          clampY = v => Math.min(Math.max(v, ys[0]), ys[1]);
    const svg = picture(
        roof, left + w + 20, h + 50, `Roofline of a ${peak.device}`,
        "Operations a second over operations a byte, both logarithmic; the table after it has the numbers.");
    for (let e = -1; e <= 5; ++e) {
      svgAdd(svg, "line", {
        class : "grid",
        x1 : lx(10 ** e),
        x2 : lx(10 ** e),
        y1 : 10,
        y2 : 10 + h
      });
      svgAdd(svg, "text", {x : lx(10 ** e) - 8, y : h + 26}, String(10 ** e));
    }
    for (let v = 10 ** Math.ceil(Math.log10(ys[0])); v < ys[1]; v *= 10) {
      svgAdd(
          svg, "line",
          {class : "grid", x1 : left, x2 : left + w, y1 : ly(v), y2 : ly(v)});
      svgAdd(svg, "text", {x : 2, y : ly(v) + 4}, number(v / 1e12));
    }
    svgAdd(svg, "text", {x : left + w / 2 - 60, y : h + 44},
           "operations a byte");
    svgAdd(svg, "text", {x : 2, y : 8}, "TFLOP/s");
    const ridge = peak.matrix_flops / peak.memory_bytes;
    svgAdd(svg, "path", {
      class : "curve",
      d : `M${lx(clampX(ys[0] / peak.memory_bytes))} ${
          ly(clampY(xs[0] * peak.memory_bytes))}L${lx(ridge)} ${
          ly(peak.matrix_flops)}L${left + w} ${ly(peak.matrix_flops)}`
    });
    svgAdd(svg, "line", {
      class : "axis",
      "stroke-dasharray" : "4 3",
      x1 : lx(clampX(intensity)),
      x2 : lx(clampX(intensity)),
      y1 : 10,
      y2 : 10 + h
    });
    for (const [label, value] of points) {
      svgAdd(svg, "circle", {
        class : "point",
        cx : lx(clampX(intensity)),
        cy : ly(clampY(value)),
        r : 6
      });
      svgAdd(svg, "text",
             {x : lx(clampX(intensity)) + 10, y : ly(clampY(value)) + 14},
             label);
    }
    table(roof, "The roofline in numbers", [ "what", "value", "note" ], [
      [ "operations", flop, "" ],
      [ "bytes", bytes, "that any implementation has to move" ],
      [ "operations a byte", intensity, "" ],
      [ "bound, TFLOP/s", bound / 1e12, peak.device ],
      ...points.map(p => [`${p[0]}, TFLOP/s`, p[1] / 1e12, p[2]]),
      ...points.map(
          p => [`${p[0]}, share of the bound in %`, 100 * p[1] / bound, ""])
    ]);
  })();

  // --- the finished code ------------------------------------------------
  for (const k of (P.code || P.isa || {}).kernels || []) {
    const code = k.code || k, hot = (code.loops || []).find(l => l.hot);
    if (!code.instructions)
      continue;
    const from = code.from || 'machine code';
    table(byId('regs'),
          `Instructions of ${k.name} by class (${from}` +
              (P.code && P.code.note ? `: ${P.code.note}` : '') + ')',
          ['class', 'kernel', 'hot loop'],
          Object.entries(code.instructions)
              .filter(([, n]) => n)
              .map(([c, n]) => [c, n, hot ? hot.instructions[c] : 0]));
  }

  // --- counts -----------------------------------------------------------
  for (const k of kernels) {
    const box = byId("counted");
    add(box, "h3", {}, k.entry);
    table(
        box, "Instructions by class", [ "class", "by warps", "by lanes" ],
        Object.entries(k.instructions).map(([ c, n ]) => [c, n.warp, n.lane]));
    table(box, "Bytes moved", [ "where", "bytes" ], Object.entries(k.bytes));
    table(box, "Accesses to memory",
          [
            "operation", "space", "what", "accesses", "bytes", "bank conflicts",
            "sectors", "sectors needed"
          ],
          k.memory.map(
              m => [m.op, m.space, describe(m.location), m.accesses, m.bytes,
                    m.bank_conflicts, m.sectors, m.ideal_sectors]));
    if (k.errors.length)
      table(box, "Faults", [ "kind", "operation", "what", "text", "times" ],
            k.errors.map(
                e => [e.kind, e.op, describe(e.location), e.text, e.count]));
  }
  if (!kernels.length)
    add(byId("counted"), "p", {}, "The kernel was not run.");
})();
