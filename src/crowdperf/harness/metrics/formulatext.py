r"""Formulas in one way of writing, before they are compared: what the official grader of MATH-500 makes of a text.

Two ways, both by grading/ of openai/prm800k (7ecc7947 of 2023-06-01): `short_form` as math_normalize.py has it,
`plain_formula` as `_normalize` of grader.py. The second reads LaTeX with pylatexenc (2.11); here the macros that
formulas have are read the same way (compared by program on 2026-11-28), and a text with another one stays unknown.
"""

import re
from string import ascii_lowercase, ascii_uppercase
from unicodedata import normalize

_UNITS = (
    "degree", "cm", "centimeter", "meter", "mile", "second", "minute", "hour", "day", "week", "month", "year", "foot",
    "feet", "inch", "yard",
)  # fmt: skip
_POWERS = {"million": "*10^6", "billion": "*10^9", "trillion": "*10^12"}
_IN_TEXT = re.compile(r"^\\text\{(.+?)\}$")

_SHOWN_AS = """
alpha α   beta β   gamma γ   delta δ   varepsilon ε   zeta ζ   eta η   theta θ   iota ι   kappa κ   lambda λ   mu μ
nu ν   xi ξ   rho ρ   sigma σ   tau τ   upsilon υ   varphi φ   chi χ   psi ψ   omega ω   epsilon ϵ   vartheta ϑ
phi ϕ   Gamma Γ   Delta Δ   Theta Θ   Lambda Λ   Xi Ξ   Pi Π   Sigma Σ   Phi Φ   Psi Ψ   Omega Ω   le ≤   leq ≤   ge
≥   geq ≥   neq ≠   approx ≈   equiv ≡   cong ≅   sim ∼   perp ⊥   parallel ∥   in ∈   notin ∉   subset ⊂   subseteq
⊆   setminus ∖   cap ∩   pm ±   mp ∓   div ÷   circ ∘   angle ∠   ldots …   dots …   cdots ⋯   to →   rightarrow →
emptyset ∅   varnothing ∅   mid |   lvert |   rvert |   vert |   lfloor ⌊   rfloor ⌋   lceil ⌈   rceil ⌉   langle ⟨
rangle ⟩   lbrace {   rbrace }   pi π   infty ∞   cup ∪   cdot ·   times ×   log log   ln ln   sin sin   cos cos
tan tan   arcsin arcsin   arccos arccos   arctan arctan   sinh sinh   cosh cosh   tanh tanh   exp exp   max max
min min   lim lim   sum ∑   prod ∏   int ∫   ell ℓ   star ⋆   oplus ⊕   otimes ⊗   wedge ∧   vee ∨   supset ⊃
supseteq ⊇   propto ∝   partial ∂   nabla ∇   Leftrightarrow ⇔   Rightarrow ⇒   leftarrow ←   mapsto ↦   simeq ≃
nmid ∤   ast ∗   bullet ∙   forall ∀   exists ∃   lVert ‖   rVert ‖   Vert ‖   vdots ⋮   ddots ⋱   inf inf   sup sup
aleph ℵ   therefore ∴   ni ∋   ngeq ≱   nleq ≰   leqslant ⩽   geqslant ⩾   prime '
""".split()  # noqa: SIM905 - a name and its text, as one reads them
_LEAVES_NOTHING = """
left right big Big bigl bigr displaystyle cot sec csc gcd lcm det mod bmod binom dbinom tbinom operatorname triangle
degree boxed lt gt ne land lor choose over hbox cfrac phantom neg implies iff Re Im deg dim arg ker Pr coth overset
stackrel cancel | / !
""".split()  # noqa: SIM905
_SYMBOLS = (
    dict(zip(_SHOWN_AS[::2], _SHOWN_AS[1::2], strict=True))
    | dict.fromkeys(_LEAVES_NOTHING, "")
    | dict.fromkeys((",", ";", ":", " "), " ")
    | {"quad": "  ", "qquad": "    "}
    | {sign: sign for sign in "{}&_#%$"}
)
"""Macros without arguments; a name that pylatexenc does not know leaves nothing, and its arguments stay."""
_SHOWN = frozenset({
    "text", "textbf", "textit", "textrm", "mathrm", "overline", "underline", "overrightarrow", "widehat", "underbrace",
    "emph", "overbrace", "widetilde", "textsc",
})  # fmt: skip
_HIDDEN = frozenset({"mbox", "texttt", "color", "textsf", "textup"})
_ACCENTS = {"hat": "\u0302", "vec": "\u20d7", "bar": "\u0305", "tilde": "\u0303", "dot": "\u0307", "ddot": "\u0308"}
"""Set on each letter of the argument, as one character where there is one."""
_HOLLOW = dict(zip("CNQRZ", "ℂℕℚℝℤ", strict=True))
_BOLD = {ord(letter): 0x1D400 + place for place, letter in enumerate(ascii_uppercase + ascii_lowercase)}
_MATRICES, _PLAIN_BLOCKS = ("pmatrix", "bmatrix", "smallmatrix"), ("matrix", "vmatrix", "cases")
_TOKEN = re.compile(r"\\[^\W\d_]+|\\.|---|--|''|``|.", re.DOTALL)
_SPECIAL = {"---": "—", "--": "–", "''": "”", "``": "“", "~": "\N{NO-BREAK SPACE}", "&": "   "}
_SIGNS = str.maketrans({"√": "sqrt", "π": "pi", "∞": "inf", "∪": "U", "·": "*", "×": "*"})


class _Unknown(Exception):
    """Is raised for LaTeX that is not read here."""


class _Latex:
    """Reads a LaTeX text from left to right."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._next = 0

    def text(self) -> str:
        """Return the whole as plain text; raises _Unknown."""
        return self._until("")

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def _until(self, end: str) -> str:
        """Return the text up to the token `end`, which is left; to the end of all where it is empty. A brace without
        its partner is left out, as there."""
        found = ""
        while (token := self._peek()) != end:
            if not token and end == "}":
                break
            self._next += 1
            if token == "}" and not end:
                continue
            if token in ("}", "", r"\end"):
                raise _Unknown
            found += self._one(token)
        return found

    def _one(self, token: str) -> str:
        """Return the text of what begins with a token that was taken."""
        if token == "{":
            found = self._until("}")
            self._next += 1
            return found
        return self._macro(token[1:]) if token[0] == "\\" else _SPECIAL.get(token, token)

    def _skip_blanks(self) -> None:
        while self._peek().isspace():
            self._next += 1

    def _macro(self, name: str) -> str:
        if name.isalpha():
            self._skip_blanks()
        if name in _SYMBOLS:
            return _SYMBOLS[name]
        if name == "frac":
            return f"{self._argument()}/{self._argument()}"
        if name == "sqrt":
            if self._peek() == "[":  # the degree of the root is not in the text
                self._next += 1
                start = self._next
                self._until("]")
                if "[" in self._tokens[start : self._next]:
                    raise _Unknown
                self._next += 1
            return f"√({self._argument()})"
        if name in _ACCENTS:
            return "".join(normalize("NFC", letter + _ACCENTS[name]) for letter in self._argument().strip())
        if name == "mathbf":
            return self._argument().translate(_BOLD)
        if name == "mathbb" and len(letter := self._argument()) == 1 and letter in _HOLLOW:
            return _HOLLOW[letter]
        if name in _SHOWN or name in _HIDDEN:
            found = self._argument()
            return found if name in _SHOWN else ""
        if name == "begin":
            return self._block()
        if name == "\\":
            self._skip_blanks()
            if self._peek() not in ("*", "["):
                return "\n"
        raise _Unknown

    def _argument(self) -> str:
        self._skip_blanks()
        token = self._take()
        if not token or token == "}" or token in _SPECIAL or (token[0] == "\\" and token[1:] not in _SYMBOLS):
            raise _Unknown
        return _SYMBOLS[token[1:]] if token[0] == "\\" else self._one(token)

    def _word(self) -> str:
        if self._take() != "{":
            raise _Unknown
        word = ""
        while (token := self._take()) != "}":
            if not token:
                raise _Unknown
            word += token
        return word

    def _block(self) -> str:
        name = self._word()
        if name == "array":
            self._word()
        elif name not in (*_MATRICES, *_PLAIN_BLOCKS):
            raise _Unknown
        rows: list[list[str]] = [[""]]
        plain = ""
        while (token := self._take()) != r"\end":
            if not token or token == "}":
                raise _Unknown
            piece = self._one(token)
            plain += piece
            if token == "&":
                rows[-1].append("")
            elif token == r"\\":
                rows.append([""])
            else:
                rows[-1][-1] += piece
        if self._word() != name:
            raise _Unknown
        if name in _PLAIN_BLOCKS:
            return plain
        if rows[-1] == [""] or not "".join(rows[-1]).strip():
            rows.pop()
        return "[ " + "; ".join(" ".join(cell.strip() for cell in row) for row in rows) + " ]"


def _latex_text(text: str) -> str:
    """Return a LaTeX formula as plain text; raises _Unknown."""
    text = text.replace(r"\tfrac", r"\frac").replace(r"\dfrac", r"\frac").replace(r"\frac", r" \frac")
    return _Latex(text).text().translate(_SIGNS).strip()


def without_thousands(text: str) -> str:
    """Return a text whose numbers have no separators."""
    while (shorter := re.sub(r"(\d),(\d\d\d)($|\D)", r"\1\2\3", text)) != text:
        text = shorter
    return text


def _near_integer(text: str) -> float | None:
    """Return the number of a text in any writing of Python's that is an integer but for rounding, else None."""
    try:
        number = float(text)
        return number if abs(number - round(number)) <= 1e-7 else None
    except (ValueError, OverflowError):
        return None


def is_integer(text: str) -> bool:
    """Return whether a text is a number without a fraction, with or without separators."""
    return _near_integer(without_thousands(text)) is not None


def plain_formula(text: str) -> str | None:
    """Return a formula without units, signs of currency and percent, blanks, braces and capitals, fractions as a/b;
    None where it has LaTeX that is not read here."""
    whole = _IN_TEXT.search(text)
    text = re.sub(r"\\%|\\\$|[$%]", "", whole[1] if whole else text)
    text = text.replace(" or ", " , ").replace(" and ", " , ")
    for word, power in _POWERS.items():
        text = text.replace(word, power)
    for unit in _UNITS:
        text = re.sub(rf"{unit}(?:es)?s? *(?:\^[0-9]+)?", "", text)
    text = re.sub(r"\^ *\\circ", "", text)
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    text = re.sub(r",\\! *", "", text)
    number = _near_integer(text)
    text = text if number is None else str(round(number))
    if "\\" in text:
        try:
            text = _latex_text(text)
        except (_Unknown, RecursionError):  # thousands of braces in braces
            return None
    text = re.sub("- *", "-", text)
    text = re.sub("([0-9]) +([0-9])", r"\1+\2", text)  # 7 3/4 is 7 + 3/4
    text = re.sub("[ {}]", "", text).lower()
    number = _near_integer(without_thousands(text))
    return text if number is None else str(int(number))


def _short_fractions(text: str) -> str:
    """Return a formula with braces around the parts of each fraction; raises ValueError where one has none."""
    first, *rest = text.split(r"\frac")
    found = first
    for piece in rest:
        if not piece:
            raise ValueError(text)
        if piece[0] != "{" and len(piece) < 2:
            return text
        if piece[0] != "{":
            piece = f"{{{piece[0]}}}" + (piece[1:] if piece[1] == "{" else f"{{{piece[1]}}}{piece[2:]}")
        found += r"\frac" + piece
    return found


def _ratio(text: str) -> str:
    """Return a/b of two integers as a fraction of LaTeX; any other text as it is."""
    over, sign, under = text.partition("/")
    try:
        is_ratio = bool(sign) and text == f"{int(over)}/{int(under)}"
    except ValueError:
        return text
    return rf"\frac{{{over}}}{{{under}}}" if is_ratio else text


def _in_braces(text: str) -> str:
    if not text:
        raise ValueError(text)
    return text if text[0] == "{" else f"{{{text[0]}}}{text[1:]}"


def _shortened(text: str) -> str:
    text = text.replace("\n", "").replace(r"\!", "").replace("\\\\", "\\")
    text = text.replace("tfrac", "frac").replace("dfrac", "frac").replace(r"\left", "").replace(r"\right", "")
    text = text.replace(r"^{\circ}", "").replace(r"^\circ", "").replace(r"\$", "")
    value, *units = text.split(r"\text{ ")
    if len(units) > 1:
        raise ValueError(text)
    text = value.replace(r"\%", "").replace(" .", " 0.").replace("{.", "{0.")
    if not text:
        return text
    text = f"0{text}" if text[0] == "." else text
    name, sign, value = text.partition("=")
    text = value if sign and "=" not in value and len(name) <= 2 else text
    first, *rest = text.split(r"\sqrt")
    text = _short_fractions((first + "".join(r"\sqrt" + _in_braces(piece) for piece in rest)).replace(" ", ""))
    return _ratio(r"\frac{1}{2}" if text == "0.5" else text)


def short_form(text: str) -> str:
    r"""Return a formula without blanks, units on its right and `x=` on its left, with braces after \frac and \sqrt."""
    text = text.strip()
    whole = _IN_TEXT.search(text)
    text = whole[1].strip() if whole else text
    try:
        return _shortened(text)
    except ValueError:  # a formula that breaks off, or with two units
        return text
