"""How the page looks: light and dark, on a telephone, a screen and paper."""

from __future__ import annotations

from holdfast.rendering.html.layout import width_of

LENSES = 16
"""So many lenses of a review can be chosen from."""
MOST_COLUMNS = 24
"""So many columns of a graph are told apart by their width."""
_BESIDE = "(4.5rem + 2px)"
"""What stands beside a graph in the width of the window: of its card and of the page."""
_KINDS = ("critical", "warning", "info")
_COLOURS = """
:root { color-scheme: light dark;
  --paper: light-dark(#f6f7f9, #101318); --card: light-dark(#ffffff, #181c23);
  --ink: light-dark(#1a2029, #e7eaf0); --soft: light-dark(#555e6b, #a6afbd);
  --line: light-dark(#dde1e7, #2d343f); --fill: light-dark(#eef1f5, #222833);
  --accent: light-dark(#1d4ed8, #8fb4ff); --wash: light-dark(#e8eefc, #1d2940);
  --good: light-dark(#116b3c, #6fd79b); --good-wash: light-dark(#e3f4ea, #15311f);
  --bad: light-dark(#b3261e, #ff9d94); --bad-wash: light-dark(#fce8e6, #3c1a18);
  --warn: light-dark(#8a4b00, #ffc069); --warn-wash: light-dark(#fdf0dc, #37270e);
  --idle: light-dark(#c9d0da, #47505e); --edge: light-dark(#858e9c, #6c7686); }
"""
_BASE = """
* { box-sizing: border-box }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100% }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: anywhere; container: page / inline-size }
main, header, footer, nav.jump { max-width: 62rem; margin: 0 auto; padding: 0 1.25rem }
header { padding-top: 2.25rem }
main { display: grid; grid-template-columns: minmax(0, 1fr); row-gap: 1rem; margin-block: 1rem }
h1 { font-size: clamp(1.45rem, 1.1rem + 1.6vw, 2.1rem); line-height: 1.25; margin: .2rem 0 .9rem;
  letter-spacing: -.012em; text-wrap: balance }
h2 { font-size: 1.2rem; margin: 0 0 .9rem; letter-spacing: -.005em }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .5rem } h4, h5, h6 { margin: 1.1rem 0 .4rem }
p { margin: .6rem 0 } a { color: var(--accent); text-underline-offset: .15em }
ul, ol { padding-left: 1.35rem } li { margin: .25rem 0 }
code, pre, .mono { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace;
  font-size: .875em }
code { background: var(--fill); border-radius: .3em; padding: .08em .35em }
pre { background: var(--fill); border-radius: .6rem; padding: .8rem 1rem; margin: .6rem 0;
  white-space: pre-wrap; line-height: 1.5 }
pre code { background: none; padding: 0; font-size: 1em }
blockquote { margin: .7rem 0; padding: .1rem 1rem; border-left: 3px solid var(--line);
  color: var(--soft) }
table { border-collapse: collapse; width: 100%; font-size: .92rem;
  font-variant-numeric: tabular-nums }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .8rem }
th, td { padding: .42rem .7rem .42rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: break-word }
th:last-child, td:last-child { padding-right: 0 }
td.n, th.n { text-align: right; white-space: nowrap }
caption { text-align: left; padding-bottom: .3rem } td.name { min-width: 13rem }
tr.sum td { font-weight: 600; border-bottom: 0 }
hr { border: 0; border-top: 1px solid var(--line) }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: .25rem }
.wide { overflow-x: auto; overscroll-behavior-x: contain; margin: .6rem 0 }
.soft { color: var(--soft) } .small { font-size: .88rem }
.cite { text-decoration: none; font-weight: 600; background: var(--wash); border-radius: .3em;
  padding: 0 .15em } .ref { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .9em }
.out::after { content: "\\2197"; font-size: .75em; margin-left: .1em; text-decoration: none }
"""
_PARTS = """
.card { background: var(--card); border: 1px solid var(--line); border-radius: .9rem;
  padding: 1.3rem 1.5rem; scroll-margin-top: 1rem }
.eyebrow { color: var(--soft); font-size: .85rem; margin: 0 }
.chip { display: inline-block; border-radius: 1rem; padding: .08rem .65rem; font-size: .82rem;
  font-weight: 600; background: var(--fill); color: var(--soft); white-space: nowrap }
.s-complete { background: var(--good-wash); color: var(--good) }
.s-failed, .s-critical { background: var(--bad-wash); color: var(--bad) }
.s-escalated, .s-cancelled, .s-warning { background: var(--warn-wash); color: var(--warn) }
.s-running, .s-paused, .s-info { background: var(--wash); color: var(--accent) }
.verdict { font-size: .95rem; padding: .22rem .9rem; white-space: normal }
dl.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.6rem, 1fr)); gap: .7rem;
  margin: 1.2rem 0 .4rem }
dl.facts div { background: var(--card); border: 1px solid var(--line); border-radius: .8rem;
  padding: .6rem .75rem }
dl.facts dt { color: var(--soft); font-size: .78rem }
dl.facts dd { margin: 0; font-size: 1.02rem; font-weight: 650; font-variant-numeric: tabular-nums;
  white-space: nowrap }
dl.facts small { display: block; white-space: normal; font-weight: 400; font-size: .78rem;
  color: var(--soft) }
nav.jump ul { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; list-style: none; padding: 0;
  margin: .9rem 0 0; font-size: .92rem }
#answer .said { font-size: 1.06rem; line-height: 1.7 } .said > :first-child { margin-top: 0 }
.warnings { border-left: 4px solid var(--warn) } .broken { border-left: 4px solid var(--bad) }
.doubt { background: var(--warn-wash); border-left: 4px solid var(--warn); border-radius: .6rem;
  padding: .1rem .9rem; margin-bottom: 1rem } .doubt h3 { margin: .6rem 0 .2rem }
.said mark { background: var(--warn-wash); color: var(--warn); font-size: .86em }
.do { background: var(--wash); border-radius: .6rem; padding: .6rem .9rem }
#lost { position: sticky; top: 0; z-index: 1; margin: 0; padding: .7rem 1.25rem; text-align: center;
  background: var(--bad-wash); color: var(--bad); border-bottom: 2px solid var(--bad) }
#lost[hidden] { display: none }
.not-done { background: var(--bad-wash); color: var(--bad); border-left: 4px solid var(--bad);
  border-radius: .6rem; padding: .6rem .9rem }
.typed { background: none; padding: 0; font-weight: 600; user-select: all }
article.subtask { border-top: 1px solid var(--line); padding: 1.1rem 0 .6rem;
  scroll-margin-top: .5rem }
article.subtask:first-of-type { border-top: 0; padding-top: 0 }
article.subtask h3 { margin: 0 0 .3rem; display: flex; gap: .6rem; flex-wrap: wrap;
  align-items: baseline } article:target { background: var(--wash); border-radius: .6rem;
  box-shadow: 0 0 0 .6rem var(--wash) }
details { margin: .5rem 0; border: 1px solid var(--line); border-radius: .6rem }
summary { cursor: pointer; padding: .42rem .8rem; font-size: .92rem; color: var(--soft) }
details[open] > summary { border-bottom: 1px solid var(--line) }
details > :not(summary) { margin-left: .9rem; margin-right: .9rem }
.try { border-left: 3px solid var(--idle); padding-left: .9rem; margin-block: .9rem }
.try.refused { border-color: var(--warn) }
.try h3, .try h4 { margin: 0 0 .3rem; font-size: .95rem }
.why { color: var(--warn) } .reason { display: block }
ul.turns { list-style: none; padding: 0; margin-block: .6rem; font-size: .92rem }
ul.turns li { margin: .55rem 0 } ul.turns p { margin: 0 }
ul.turns .tool { margin-left: .45rem; padding-left: .95rem; border-left: 2px solid var(--line) }
ul.plain { list-style: none; padding-left: 0 }
.notes > li { padding: .3rem .5rem; margin: .2rem -.5rem; border-radius: .6rem;
  scroll-margin-top: 1rem } .notes > li:target { background: var(--wash) } .notes ul { margin: 0 }
"""
_DRAWN = """
svg { display: block } svg text { font-family: inherit; fill: var(--ink) }
#plan { justify-self: center; width: fit-content; min-width: 100%;
  max-width: calc(100cqw - 1.5rem) }
#plan > :not(.graph) { contain: inline-size } .too-wide { display: none }
.graph { background: linear-gradient(90deg, var(--card) 40%, transparent) 0 0 / 3rem 100% local,
  linear-gradient(270deg, var(--card) 40%, transparent) 100% 0 / 3rem 100% local,
  linear-gradient(90deg, var(--edge), transparent) 0 0 / .8rem 100% scroll,
  linear-gradient(270deg, var(--edge), transparent) 100% 0 / .8rem 100% scroll;
  background-repeat: no-repeat }
svg.plan { font-size: 13px; max-width: none } svg.plan a { text-decoration: none }
svg .box { fill: var(--card); stroke: var(--line); stroke-width: 1.3 }
svg .s-box-complete { stroke: var(--good) } svg .s-box-failed { stroke: var(--bad) }
svg .s-box-running { stroke: var(--accent) }
svg .s-box-escalated, svg .s-box-cancelled { stroke: var(--warn) }
svg .added { stroke-dasharray: 5 3 } svg .chain { stroke-width: 3 } svg .name { font-weight: 650 }
svg .dim { fill: var(--soft); font-size: 11.5px } svg .climb { fill: var(--warn) }
svg .edge { fill: none; stroke: var(--idle); stroke-width: 1.4 }
svg .edge.chain { stroke: var(--accent); stroke-width: 3 } svg .tip { fill: var(--idle) }
svg .tip.chain { fill: var(--accent) }
ul.times { list-style: none; padding: 0; margin: .8rem 0; font-size: .88rem }
ul.times li { display: grid; grid-template-columns: minmax(6rem, 15rem) 1fr 4.6rem; gap: .8rem;
  align-items: center; padding: .16rem 0; margin: 0; border-bottom: 1px solid var(--line) }
ul.times .t { text-align: right; font-variant-numeric: tabular-nums; color: var(--soft) }
ul.times .who { white-space: nowrap; overflow: hidden; text-overflow: ellipsis }
svg.row { width: 100%; height: 18px } svg .span { fill: var(--idle); opacity: .55 }
svg .work { fill: var(--accent) } svg .odd { fill: var(--warn) }
svg .grid { stroke: var(--line); stroke-width: 1 } svg .axis { font-size: 11px; fill: var(--soft) }
.key { display: inline-block; vertical-align: -.15em }
.file { margin: 1.3rem 0 } .file h3 { font-family: ui-monospace, Menlo, Consolas, monospace;
  font-size: .95rem }
.remark { border: 1px solid var(--line); border-left-width: 4px; border-radius: .6rem;
  padding: .6rem .95rem; margin: .6rem 0; list-style: none }
.remark.critical { border-left-color: var(--bad) }
.remark.warning { border-left-color: var(--warn) }
.remark.info { border-left-color: var(--accent) } .remark.refuted { border-style: dashed }
.remark .place { user-select: all; overflow-wrap: anywhere }
.files ul { padding: 0 } .remark ul { padding-left: 1.35rem } .review { position: relative }
.filter { position: absolute; opacity: 0 }
.filter + label { display: inline-block; border: 1px solid var(--line); border-radius: 1rem;
  padding: .05rem .75rem; margin: .2rem .3rem .2rem 0; font-size: .9rem; cursor: pointer;
  color: var(--soft); text-decoration: line-through }
.filter:checked + label { background: var(--wash); color: var(--ink); text-decoration: none }
.filter:checked + label::before { content: "\\2713\\00a0" }
.filter:focus-visible + label { outline: 2px solid var(--accent); outline-offset: 2px }
.choice { font-size: .92rem; color: var(--soft); margin-right: .6rem }
pre.lines { padding: .5rem 0; white-space: normal } pre.lines span { display: block;
  padding: 0 .9rem; white-space: pre-wrap } pre.lines .here { background: var(--warn-wash) }
.tell > summary { font-weight: 600 }
.quiet > details { background: var(--card); border-radius: .9rem }
textarea { width: 100%; resize: vertical; background: var(--card); color: var(--ink);
  border: 1px solid var(--edge); border-radius: .5rem; padding: .6rem .7rem; line-height: 1.45;
  font: .82rem ui-monospace, "SF Mono", Menlo, Consolas, monospace; white-space: pre;
  overflow-x: auto }
form.edit { margin-block: .6rem } form.edit button { width: auto; flex: 1 1 12rem }
.do, .not-done { white-space: pre-line }
.ask { border-left: 4px solid var(--accent); padding-left: 1rem; margin: 1.1rem 0 1.6rem }
.ask h3 { margin-top: 0 }
form.order { display: grid; grid-template-columns: minmax(0, 1fr) 9.5rem; gap: .6rem 1rem;
  align-items: end; margin: .6rem 0 }
.fields { display: flex; flex-wrap: wrap; gap: .6rem; align-self: center }
.field { display: grid; gap: .2rem; flex: 1 1 12rem; font-size: .85rem; color: var(--soft) }
.field.few { flex: 0 1 9rem } button, form input, select { font: inherit; font-size: .95rem;
  border: 1px solid var(--edge); border-radius: .5rem; padding: .38rem .7rem; width: 100%;
  min-height: 2.5rem; background: var(--card); color: var(--ink) }
button { background: var(--wash); cursor: pointer;
  font-weight: 600; color: var(--accent); border-color: transparent }
button.first { background: var(--accent); color: var(--card) }
button:hover { border-color: var(--accent) } button:disabled { opacity: .5; cursor: default }
footer { color: var(--soft); font-size: .85rem; padding-bottom: 3rem }
@media (max-width: 40rem) { .card { padding: 1rem 1.05rem; border-radius: .7rem }
  main, header, footer, nav.jump { padding-left: .8rem; padding-right: .8rem }
  ul.times li { grid-template-columns: minmax(0, 7.2rem) 1fr 3.6rem; gap: .5rem }
  td.more, th.more { display: none }
  #plan td.name { min-width: 8rem } table { font-size: .86rem } form.order { display: block }
  dl.facts div:last-child:nth-child(odd) { grid-column: 1 / -1 }
  form.order button { margin-top: .5rem } .ask { padding-left: .8rem } }
@media print { :root { color-scheme: light } body { font-size: 10.5pt; background: none }
  .card { border: 0; padding: 0; margin: 1.2rem 0 }
  nav.jump, form, #lost, .filter, .filter + label, .choice { display: none }
  details::details-content { content-visibility: visible; block-size: auto }
  main { display: block } .too-wide { display: none !important } .graph { background: none }
  #plan { width: auto; max-width: none } .wide { overflow: visible }
  svg.plan { max-width: 100%; height: auto }
  article, .remark, li, tr { break-inside: avoid } a { color: inherit } }
"""


def _filters() -> str:
    """Return the rules by which remarks disappear by the boxes above them, and files with no
    others.
    """
    rules = [f"#k-{kind}:not(:checked) ~ .files .remark.{kind}" for kind in _KINDS]
    rules += [f"#l-{n}:not(:checked) ~ .files .remark.l-{n}" for n in range(LENSES)]
    for bits in range(1, 8):
        has = [kind for place, kind in enumerate(_KINDS) if bits >> place & 1]
        boxes = " ~ ".join(f"#k-{kind}:not(:checked)" for kind in has)
        rules.append(f"{boxes} ~ .files .file.only-{bits}")
    return ",\n".join(rules) + " { display: none }\n"


def _too_wide() -> str:
    """Return the rules that show, in windows too narrow for a graph, that it scrolls."""
    return "".join(
        f"@container page (max-width: calc({width_of(n) - 1}px + {_BESIDE})) {{"
        f" .over-{n} {{ display: block }} }}\n"
        for n in range(1, MOST_COLUMNS + 1)
    )


STYLE = _COLOURS + _BASE + _PARTS + _DRAWN + _filters() + _too_wide()
