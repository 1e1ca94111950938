"""What would act in the page of whoever marks it: in a written answer, in the files of one, in an output of code.

Each sets `acted` in the window that it is in, or asks `asked-for` of a server, or leads away to it.
"""

import base64
import copy

from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

EVIL = "top.acted=1"
IMAGE = f'<img src=x onerror="{EVIL}">'
ASKED = "asked-for"
PAGE = base64.b64encode(f"<script>{EVIL}</script>".encode()).decode()
DRAWING = f'<svg xmlns="http://www.w3.org/2000/svg" onload="{EVIL}"><script>{EVIL}</script></svg>'
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

WRITTEN = {
    "a script": f"<script>{EVIL}</script>",
    "a script in a line": f"so <script>{EVIL}</script> it is",
    "a script from elsewhere": f'<script src="/{ASKED}.js"></script>',
    "a script in capitals": f"<ScRiPt >{EVIL}</sCrIpT >",
    "a script without an end": f"<script>{EVIL}//",
    "a script of formulas": '<script type="text/x-mathjax-config">top.acted=1</script>',
    "an image that fails": IMAGE,
    "an image with a slash": f'<div><img/src=x/onerror={EVIL}></div>',
    "an image without an end": f"<div><img src=x onerror={EVIL} ",
    "an image in a block": f"<div><img src=x onerror={EVIL}></div>",
    "a drawing": DRAWING,
    "a drawing in a line": f'so <svg onload="{EVIL}"> it is',
    "an animation": f'<svg><animate onbegin="{EVIL}" attributeName=x dur=1s></svg>',
    "a link": f'<a href="javascript:{EVIL}">x</a>',
    "a link in Markdown": f"[x](javascript:{EVIL})",
    "a link by reference": f"[x][y]\n\n[y]: javascript:{EVIL}",
    "a link in angles": f"<javascript:{EVIL}>",
    "a link with a tab": f'<a href="java&#9;script:{EVIL}">x</a> [x](java&Tab;script&colon;{EVIL})',
    "a link to a page of data": f"[x](data:text/html;base64,{PAGE})",
    "a link to what the server does": f"[x](/{ASKED}?path=submitted) <http://127.0.0.1/{ASKED}> http://127.0.0.1/{ASKED}",
    "a link in a formula": rf"$\href{{javascript:{EVIL}}}{{x}}$ and $\hr&#101;f{{/{ASKED}}}{{x}}$",
    "a link in a formula, in a comment's parts": rf"$\hr<!-- -->ef{{javascript:{EVIL}}}{{x}}$",
    "a link in a formula, in a block": rf"<div>$\hr&#101;f{{/{ASKED}}}{{x}}$</div>",
    "a link of a part of a formula": rf'$\mmlToken{{mi}}[href="http://127.0.0.1/{ASKED}"]{{x}}$',
    "a link of a part of a formula, in parts": f"<div>$\\mml&#84;oken{{mi}}[href=http://127.0.0.1/{ASKED}]{{x}}$</div>",
    "a link by another name": rf"$\let\x=\mmlToken$ $\x{{mi}}[href=http://127.0.0.1/{ASKED}]{{x}}$",
    "a link by a name of one's own": rf"$\def\x{{\href}}$ $\newcommand\y{{\x}}$ $\y{{http://127.0.0.1/{ASKED}}}{{x}}$",
    "a picture for the mouse in a formula": rf"$\style{{cursor:url(/{ASKED}),auto}}{{x}}$",
    "a class and a name in a formula": r"$\class{MJX-x}{x} \cssId{MJX-x}{x}$",
    "a box in a formula": rf"$\bbox[background:url(/{ASKED})]{{x}}$",
    "a coloured box in a formula": rf"$\fcolorbox{{red;cursor:url(/{ASKED}),auto}}{{x}}{{y}}$",
    "formulas of an extension": r"$\require{mhchem} \ce{H2O}$",
    "a name made of letters": r"$\csname href\endcsname{x}{y}$",
    "a frame": f'<iframe srcdoc="<script>{EVIL}</script>"></iframe>',
    "a frame of a script": f'<iframe src="javascript:{EVIL}"></iframe>',
    "an object": f'<object data="data:text/html;base64,{PAGE}"></object><embed src="javascript:{EVIL}">',
    "a style": f"<style>@import '/{ASKED}.css'; body {{ display: none }}</style>",
    "a style of an element": f'<p style="position:fixed;inset:0;background:url(/{ASKED})">x</p>',
    "a style sheet": f'<link rel="stylesheet" href="/{ASKED}.css">',
    "a base": f'<base href="http://127.0.0.1/{ASKED}/">',
    "a form": f'<form action="/{ASKED}"><input name=x autofocus onfocus="{EVIL}"><button>Full credit</button></form>',
    "a page that leads away": f'<meta http-equiv="refresh" content="0;url=/{ASKED}">',
    "a sound": f'<audio src=x onerror="{EVIL}"></audio><video><source onerror="{EVIL}"></video>',
    "what opens": f'<details open ontoggle="{EVIL}">x</details>',
    "what scrolls": f'<marquee onstart="{EVIL}">x</marquee>',
    "what appears": f'<p style="animation-name:x" onanimationstart="{EVIL}" onmouseover="{EVIL}">x</p>',
    "what is read otherwise once more": (
        f"<math><mtext><table><mglyph><style><!--</style><img title='--><img src=x onerror={EVIL}>'>"
    ),
    "what is no script where scripts run": f'<noscript><p title="</noscript><img src=x onerror={EVIL}>"></noscript>',
    "the end of a field": f"</textarea></title></style></script>{IMAGE}",
    "the end of a comment": f"<!-- --!>{IMAGE} -->{IMAGE}",
    "the end of the page": f"</div></div></div></body></html>{IMAGE}",
    "a section of data": f"<![CDATA[ ]]>{IMAGE} <?x ?>{IMAGE}",
    "a template": f"<template><script>{EVIL}</script></template><slot>{IMAGE}</slot>",
    "a block of code with a language": f'```"><img/src=x/onerror={EVIL}>\nx\n```',
    "a diagram": f"```mermaid\n</pre>{IMAGE}\n```",
    "the text of a picture": f'![" onerror="{EVIL}](x "\' onerror=\'{EVIL}")',
    "the address of a picture": f'![x](x"onerror="{EVIL}) ![x](<x" onerror="{EVIL}>)',
    "a picture that the server makes": f"![x](/{ASKED}) ![x](//127.0.0.1/{ASKED}) ![x](../../{ASKED}?path=submitted)",
    "a picture that leads upwards": f'<img src="%2e%2E/{ASKED}"><img src="x/..\\{ASKED}"><img src="files//{ASKED}">',
    "a picture from elsewhere": f'![x](http://127.0.0.1/{ASKED}) <img srcset="/{ASKED} 2x" src=" /{ASKED}">',
    "a heading": f"# a {IMAGE} <b id='x' onclick='{EVIL}'>b</b>",
    "a table": f"| a |\n|---|\n| {IMAGE} |",
    "a formula": rf"$a </script>{IMAGE}$ and $$\text{{{IMAGE}}}$$" + f"\n\n\\begin{{align}}{IMAGE}\\end{{align}}",
    "a button of the page's": '<div class="btn full-credit nbgrader_cell" id="statusmessage">x</div>',
    "a picture's bytes that end in a digit of another script": "<b>data:image/png;base64,A\u0663</b>",
    "too many signs": "<b>" * 6000 + IMAGE,
    "too deep": "> " * 3000 + IMAGE,
}
ATTACHED = {
    "the bytes of a file": {"x": {"image/png": f'" onerror="{EVIL}'}},
    "the kind of a file": {"x": {f'image/png" onerror="{EVIL}" x="': PIXEL}},
    "a page as a file": {"x": {"text/html": PAGE}},
    "a drawing as a file": {"x": {"image/svg+xml": base64.b64encode(DRAWING.encode()).decode()}},
    "the name of a file": {f'x" onerror="{EVIL}': {"image/png": PIXEL}},
    "a file of no kind": {"x": {}},
    "no file": {},
}
KINDS = "text/html", "text/markdown", "text/latex", "text/plain", "image/svg+xml", "image/png", "image/jpeg"
SHOWN = {
    "HTML": {"text/html": "".join(WRITTEN[name] for name in ("a script", "a drawing", "a frame", "a form", "a table"))},
    "a script": {"application/javascript": EVIL},
    "a script and its name": {"application/javascript": EVIL, "text/plain": "a script"},
    "Markdown": {"text/markdown": f"*so* {IMAGE} {WRITTEN['a link in Markdown']}"},
    "a drawing": {"image/svg+xml": f'{DRAWING}"><script>{EVIL}</script>'},
    "LaTeX": {"text/latex": f"$a$ <script>{EVIL}</script>{IMAGE}"},
    "LaTeX with a link": {"text/latex": rf"$\href{{javascript:{EVIL}}}{{x}}$"},
    "LaTeX with a part that is a link": {"text/latex": rf"$\mmlToken{{mi}}[href=http://127.0.0.1/{ASKED}]{{x}}$"},
    "LaTeX with a hidden link": {"text/latex": f"$\\hr\0ef{{http://127.0.0.1/{ASKED}}}{{x}}$"},
    "a diagram": {"text/vnd.mermaid": f"</pre>{IMAGE}"},
    "a widget": {"application/vnd.jupyter.widget-view+json": {"model_id": "x"}},
    "a PNG": {"image/png": f'" onerror="{EVIL}'},
    "a JPEG": {"image/jpeg": f'" onerror="{EVIL}'},
    "a PDF": {"application/pdf": f'"><script>{EVIL}</script>'},
    "data": {"application/json": {"x": IMAGE}},
    "a text": {"text/plain": f"\x1b[31m{IMAGE}\x1b[0m"},
    "a text in a list of other things": {"text/plain": [IMAGE, 5]},
    **{f"a number for {kind}": {kind: 5} for kind in KINDS},
    "an unknown kind": {f'x/"><img src=x onerror="{EVIL}"': IMAGE},
}
ABOUT = {  # metadata of an output
    "a width": {"image/png": {"width": f"1 onerror={EVIL}", "height": f'"><img src=x onerror={EVIL}>'}},
    "the name of a file": {"filenames": {"image/png": f'x" onerror="{EVIL}'}, "alt": f'" onerror="{EVIL}'},
    "a page of its own": {"text/html": {"isolated": True}},
}


def works() -> dict:
    """Cells by what they try."""
    made = {text: new_markdown_cell(source) for text, source in WRITTEN.items()}
    for name, files in ATTACHED.items():
        source = f"![a](attachment:x) ![b](<attachment:{next(iter(files), 'y')}>)"
        made[f"attached: {name}"] = new_markdown_cell(source, attachments=copy.deepcopy(files))
    for name, data in SHOWN.items():
        cell = made[f"shown: {name}"] = new_code_cell("x", outputs=[new_output("display_data")])
        cell.outputs[0].data = copy.deepcopy(data)  # not all of it is as nbformat would have it
    for name, about in ABOUT.items():
        data = {"text/html": WRITTEN["a script"]} if "text/html" in about else {"image/png": "x"}
        made[f"about: {name}"] = new_code_cell("x", outputs=[new_output("display_data", data, metadata=about)])
    lines = [f"\x1b[31m{IMAGE}\x1b[38;5;28m<script>{EVIL}</script>"]
    made["an error"] = new_code_cell("x", outputs=[new_output("error", ename=IMAGE, evalue=IMAGE, traceback=lines)])
    made["what is printed"] = new_code_cell("x", outputs=[new_output("stream", text=IMAGE)])
    made["code"] = new_code_cell(f"'</pre><script>{EVIL}</script>{IMAGE}'", metadata={"tags": ["x full-credit"]})
    made["code of HTML"] = new_code_cell(f"%%html\n</pre><script>{EVIL}</script>{IMAGE}")
    made["the name of a cell"] = new_markdown_cell("x", metadata={"nbgrader": graded(f'"><script>{EVIL}</script>')})
    made["a drawing with the name of a file"] = new_code_cell("x", outputs=[new_output("display_data")])
    made["a drawing with the name of a file"].outputs[0].update(
        data={"image/svg+xml": DRAWING}, svg_filename=f"/{ASKED}"
    )
    made["metadata of another kind"] = new_markdown_cell("x", metadata={"nbgrader": IMAGE})
    made["a cell for no format"] = {**new_markdown_cell(IMAGE), "cell_type": "raw"}
    return made


def graded(name: str) -> dict:
    """nbgrader's metadata of a written answer."""
    return {
        "grade_id": name, "schema_version": 3, "cell_type": "markdown", "grade": True, "solution": True,
        "locked": False, "task": False, "points": 4,
    }  # fmt: skip
