"""What the vendor's headers and libraries say about their own interface.

Everything the generated entry points know comes from here: names from the library's dynamic symbol
table, parameters from the `*_params` structs of the tracing headers, callback ids from the cbid
headers. Nothing is typed in by hand, so a new toolkit gives a new stand-in.
"""

import re
import subprocess
from dataclasses import dataclass, field


@dataclass
class Parameter:
    type: str
    name: str


@dataclass
class Entry:
    """One exported function: `api_name` is its callback's name, `base` the name without ptsz."""

    symbol: str
    cbid: int = 0
    struct: str = ""
    parameters: list = field(default_factory=list)
    known_signature: bool = False

    @property
    def base(self):
        return re.sub(r"_pt[sd]s$|_ptsz$", "", self.symbol)

    @property
    def per_thread(self):
        return self.base != self.symbol


def exported_symbols(nm, library):
    """(name, version node or '') of every symbol the library defines, without the nodes themselves."""
    text = subprocess.run(
        [nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True
    ).stdout
    symbols = []
    for line in text.splitlines():
        _, kind, name = line.split()
        if kind == "A":
            continue
        name, _, version = name.partition("@")
        symbols.append((name, version.lstrip("@")))
    if not symbols:
        raise SystemExit(f"{library}: exports nothing; is it the vendor's library?")
    return sorted(symbols)


def callback_ids(header, prefix):
    """cbid name -> number, in the header's order."""
    text = open(header, encoding="utf-8").read()
    pairs = re.findall(prefix + r"_TRACE_CBID_(\w+)\s*=\s*(\d+)", text)
    skipped = {"INVALID", "SIZE", "FORCE_INT"}
    return {name: int(number) for name, number in pairs if name not in skipped}


def parameter_structs(header):
    """api name -> list of Parameter."""
    text = open(header, encoding="utf-8").read()
    structs = {}
    pattern = r"typedef struct \w+_params_st \{(.*?)\} (\w+)_params;"
    for body, name in re.findall(pattern, text, re.S):
        parameters = []
        for line in filter(None, (part.strip() for part in body.split(";"))):
            type_text, parameter = re.fullmatch(r"(.*?)(\w+)", line, re.S).groups()
            parameters.append(Parameter(" ".join(type_text.split()), parameter))
        structs[name] = parameters
    return structs


def entries(symbols, cbids, structs, signatures, versioned_names):
    """Joins the three. `signatures` adds what the tracing headers leave out (cf. generate_entries).

    `versioned_names`: the runtime's callback names end in the CUDA version of the signature, which its
    symbols do not (`cudaMalloc_v3020`); the driver's are the symbols.
    """
    by_base = {}
    for name, number in cbids.items():
        base = re.sub(r"_v\d+$", "", name) if versioned_names else name
        by_base.setdefault(base, []).append((number, name))
    result = []
    for symbol, _ in symbols:
        entry = Entry(symbol)
        candidates = sorted(set(by_base.get(symbol, [])))
        documented = [c for c in candidates if c[1] in structs]
        if candidates:
            entry.cbid, name = (documented or candidates)[-1]
            if name in structs:
                entry.struct = name + "_params"
                entry.parameters = structs[name]
                entry.known_signature = True
        if not entry.known_signature and symbol in signatures:
            entry.struct, entry.parameters = signatures[symbol]
            entry.known_signature = True
        result.append(entry)
    return result
