"""What is left out of the built pages is what changes nothing: plain spans of code, rules that nothing can match."""

import sys

import pytest

from tests.support.tiny_book import EXTENSIONS, build, code

sys.path.insert(0, str(EXTENSIONS))
import lighter_pages

COLOURS = """
html[data-theme="light"] .highlight pre { line-height: 125%; }
html[data-theme="light"] .highlight { background: #fefefe; color: #080808 }
html[data-theme="light"] .highlight .n { color: #080808 } /* Name */
html[data-theme="light"] .highlight .p { color: #080808 } /* Punctuation */
html[data-theme="light"] .highlight .k { color: #6730C5 } /* Keyword */
html[data-theme="light"] .highlight .gs { color: #080808; font-weight: bold } /* Generic.Strong */
html[data-theme="dark"] .highlight { background: #2b2b2b; color: #F8F8F2 }
html[data-theme="dark"] .highlight .n { color: #F8F8F2 } /* Name */
html[data-theme="dark"] .highlight .p { color: #DCC6E0 } /* Punctuation */
html[data-theme="dark"] .highlight .k { color: #DCC6E0 } /* Keyword */
html[data-theme="dark"] .highlight .gs { color: #F8F8F2; font-weight: bold } /* Generic.Strong */
"""


def test_plain_words_have_the_colour_of_all_code_in_both_modes_and_nothing_else():
    assert lighter_pages.plain_words(COLOURS) == {"n"}
    assert lighter_pages.plain_words("p { color: red }") == set()


@pytest.mark.parametrize(
    ("page", "better"),
    [
        (
            '<div class="highlight"><pre><span></span><span class="n">a</span> <span class="k">in</span>\n</pre></div>',
            '<div class="highlight"><pre><span></span>a <span class="k">in</span>\n</pre></div>',
        ),
        ('<p><span class="n">a</span></p><pre><span class="n">b</span></pre>', None),
        (
            '<dt class="sig py"><span class="n"><span class="pre">x</span></span><span class="o">=</span></dt>',
            '<dt class="sig py">x<span class="o">=</span></dt>',
        ),
        ('<dt>A term</dt><dd><span class="pre">x</span></dd>', None),
    ],
)
def test_words_without_a_colour_of_their_own_have_no_span(page, better):
    assert lighter_pages.fewer_spans(page, {"n"}) == (better or page)


KNOWN = {"a", "b", "sm:x", "bs-"}


@pytest.mark.parametrize(
    ("styles", "kept"),
    [
        (".a{x:1}.c{x:2}p{x:3}", ".a{x:1}p{x:3}"),
        (".c,.a .b{x:1}", ".c,.a .b{x:1}"),
        (".a p,#c > i{x:1}", ".a p,#c > i{x:1}"),
        (".a p{x:1}", ".a p{x:1}"),
        (".a .c,.c{x:1}", ""),
        (".a:not(.c:is(.d)){x:1}", ".a:not(.c:is(.d)){x:1}"),
        ('p[title=".c"]{x:1}', 'p[title=".c"]{x:1}'),
        (r".sm\:x{x:1}.sm\:y{x:2}", r".sm\:x{x:1}"),
        (".bs-top .b{x:1}.cs-top{x:2}", ".bs-top .b{x:1}"),
        ("@media print{.a{x:1}.c{x:2}}@media print{.c{x:3}}", "@media print{.a{x:1}}"),
        ("@media print{@supports (x:1){.c{x:1}}p{x:2}}", "@media print{p{x:2}}"),
        ("@font-face{src:x}@keyframes c{to{x:1}}", "@font-face{src:x}@keyframes c{to{x:1}}"),
        ('@charset "u;8";@import "x.css";.c{x:1}', '@charset "u;8";@import "x.css";'),
        ('.a{content:"}.c{"}.c{content:"\\"}"}.b{x:1}', '.a{content:"}.c{"}.b{x:1}'),
        ("/* .c { } */ .a{x:1} /* a } */.c{x:2}.b{x:3}", "/* .c { } */ .a{x:1} /* a } */.b{x:3}"),
        (".a{x:1}.c{x:2}}.b", ".a{x:1}.c{x:2}}.b"),  # an error: as it is
        (".a{x:url(data:y;z)}", ".a{x:url(data:y;z)}"),
    ],
)
def test_rules_that_nothing_can_match_are_left_out(styles, kept):
    assert lighter_pages.fewer_rules(styles, KNOWN) == kept
    assert lighter_pages.fewer_rules(kept, KNOWN) == kept


def test_a_built_page_keeps_the_rules_of_its_elements_and_of_its_scripts(tmp_path):
    styles = ".highlight{x:1}.given{x:2}.made-up{x:3}.nobody{x:4}"
    script = "element.className = 'given'; other.className = `made-${how}`;"
    book = build(
        tmp_path,
        [code("x = 1")],
        extensions=("lighter_pages",),
        files={"still/own.css": styles, "still/own.js": script},
        html_static_path=["still"],
    )
    assert (book.out / "_static" / "own.css").read_text(encoding="utf-8") == styles.replace(".nobody{x:4}", "")
