"""The HTML around a drawing: numbers, the choice of a lens, style and keys. It loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from fastpq.picture.colours import LENSES, Lens, common_rules, rules, stylesheet
from fastpq.picture.plain_numbers import PlainNumber
from fastpq.picture.shapes import safe

SCOPE = ".fq"

_LENS_TEXTS: dict[Lens, str] = {"bytes": "Bytes", "time": "Time", "pruning": "Pruning"}

_RULES = (
    ("", "font:13px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;color:#1f2328;max-width:1160px;margin:0", "color:#e6edf3"),
    ("h2", "font-size:16px;margin:0 0 .5em;overflow-wrap:anywhere", ""),
    ("dl", "display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,350px),1fr));gap:3px 28px;margin:0 0 14px", ""),
    ("dl div", "display:flex;gap:10px;justify-content:space-between;border-bottom:1px solid #eaeef2", "border-color:#262c33"),
    ("dt", "color:#59636e;font-weight:400;white-space:nowrap", "color:#9198a1"),
    ("dd", "margin:0;text-align:right;font-variant-numeric:tabular-nums;overflow-wrap:anywhere", ""),
    ("dd.w", "color:#b3470c;font-weight:600", "color:#f0883e"),
    ("input", "position:absolute;opacity:0;pointer-events:none", ""),
    (
        "label",
        "display:inline-block;margin:0;padding:3px 14px;border:1px solid #d0d7de;margin-right:-1px;cursor:pointer;"
        "color:#1f2328;background:#fff",
        "color:#e6edf3;border-color:#3d444d;background:#161b22",
    ),
    ("input:checked+label", "background:#1f4e8c;border-color:#1f4e8c;color:#fff", "background:#3d6a99;border-color:#3d6a99"),
    ("input:focus-visible+label", "outline:2px solid #4f86c0;outline-offset:2px", "outline-color:#a9d0f7"),
    (".v", "overflow-x:auto;margin-top:12px;clear:both", ""),
    (".v svg", "display:block;width:100%;min-width:720px;height:auto", ""),
    (".v:focus-visible", "outline:2px solid #4f86c0;outline-offset:2px", "outline-color:#a9d0f7"),
    (".v svg .z", "stroke:#1f2328;stroke-width:2", "stroke:#fff"),
    (".y", "display:none", ""),
    ("input[value=pruning]:checked~.y", "display:block", ""),
    (
        "output",
        "display:block;white-space:pre-line;min-height:6.4em;margin:10px 0 0;padding:6px 12px;border-left:3px solid #d0d7de;"
        "background:#f6f8fa;overflow-wrap:anywhere",
        "border-color:#3d444d;background:#161b22",
    ),
    ("p", "color:#59636e;margin:.6em 0 0;font-size:12px", "color:#9198a1"),
)

# Shows a shape's title as text below the drawing, if the pointer is on the shape or arrow keys reach it.
_SCRIPT = """
(()=>{const form=document.currentScript.closest('form'),out=form.querySelector('output');let place=null;
form.onsubmit=()=>false;
const show=shape=>{const text=shape&&shape.querySelector(':scope>title');if(!text)return;
if(place)place.classList.remove('z');place=shape;place.classList.add('z');out.textContent=text.textContent};
form.addEventListener('pointerover',event=>{if(event.target.tagName==='rect')show(event.target)});
form.addEventListener('keydown',event=>{const view=event.target.closest('.v');
const step={ArrowRight:1,ArrowLeft:-1,ArrowDown:1,ArrowUp:-1}[event.key];
if(!view||!step)return;const shapes=[...view.querySelectorAll('rect')].filter(each=>each.querySelector(':scope>title'));
if(!shapes.length)return;let next=shapes.indexOf(place)+step;
if(place&&shapes.includes(place)&&(event.key==='ArrowDown'||event.key==='ArrowUp')){const box=place.getBBox();
const rows=shapes.filter(each=>{const other=each.getBBox();
return step>0?other.y>=box.y+box.height-.01:other.y+other.height<=box.y+.01});
if(!rows.length)return event.preventDefault();
const near=each=>{const other=each.getBBox();
return Math.abs(other.y-box.y)*1e4+Math.abs(other.x+other.width/2-box.x-box.width/2)};
next=shapes.indexOf(rows.reduce((one,other)=>near(other)<near(one)?other:one))}
event.preventDefault();show(shapes[Math.max(0,Math.min(shapes.length-1,next))])})})()
""".replace("\n", "")


def _style() -> str:
    rows = list(_RULES)
    rows += common_rules()
    for lens in LENSES:
        rows += rules(lens, f"input[value={lens}]:checked~.v")
    return stylesheet(rows, SCOPE)


def svg(body: str, width: float, height: float, name: str, style: str = "") -> str:
    """Return an SVG element.

    Args:
        body: its shapes.
        width, height: size of the drawing.
        name: what screen readers say.
        style: CSS inside of it, or nothing.
    """
    css = f"<style>{style}</style>" if style else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="d" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{safe(name)}">{css}{body}</svg>'
    )


def numbers_html(numbers: Sequence[PlainNumber]) -> str:
    """Return the plain numbers as a list."""
    items = "".join(
        f"<div><dt>{safe(each.name)}</dt><dd{' class=w' if each.is_notable else ''}>{safe(each.text)}</dd></div>"
        for each in numbers
    )
    return f"<dl>{items}</dl>"


def fragment(name: str, numbers: Sequence[PlainNumber], chunks: str, bars: str, lens: Lens) -> str:
    """Return the picture as an HTML element with its style.

    Args:
        name: the file.
        numbers: the plain numbers.
        chunks: the SVG of the ruler and the chunks.
        bars: the SVG of the bars, or nothing.
        lens: the lens at first.
    """
    # A form gives each picture its own group of radio buttons, though they have the same name in each.
    choices = "".join(
        f'<input type="radio" name="lens" value="{each}" id="fq-{each}-{_number_of(name)}"{" checked" if each == lens else ""}>'
        f'<label for="fq-{each}-{_number_of(name)}">{_LENS_TEXTS[each]}</label>'
        for each in LENSES
    )
    sole_lens = '<input type="radio" name="lens" value="bytes" checked hidden>'
    views = f'<div class="v" tabindex="0">{chunks}</div>' + (f'<div class="v y" tabindex="0">{bars}</div>' if bars else "")
    hint = "Point at an area, or press Tab and then the arrow keys: its facts stand here."
    return (
        f'<form class="fq" autocomplete="off"><style>{_style()}</style><h2>{safe(name)}</h2>{numbers_html(numbers)}'
        f'{choices if bars else sole_lens}{views}<output aria-live="polite">{hint}</output><script>{_SCRIPT}</script></form>'
    )


def _number_of(name: str) -> str:
    from zlib import crc32

    return f"{crc32(name.encode('utf-8', 'surrogatepass')):08x}"


def page(title: str, body: str) -> str:
    """Return a whole HTML page.

    Args:
        title: the title of the page.
        body: the picture.
    """
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">'
        f"<title>{safe(title)}</title><style>body{{margin:20px;background:#fff;display:flex;justify-content:center}}"
        ".fq{width:100%}@media(prefers-color-scheme:dark){body{background:#0d1117}}</style></head>"
        f"<body>{body}</body></html>\n"
    )
