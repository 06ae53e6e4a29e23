"""Who speaks in a line of a log: what launchers write before what was said. Pure, linear.

The stamp of a collector, the rank of a launcher, the host of a remote shell, the name of a logger, a bar of
progress that no end of line follows: in any order, each bounded, and all before the words that are read.
"""

from __future__ import annotations

import re

_STAMP = (
    r"(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?:?(?= |\[)"
    r"|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d(?= ))"
)
_BAR = r" {0,3}\d{1,3}%\|[^|\n]{0,150}\| \d{1,12}/\d{1,12} \[[^\]\n]{0,60}\](?=[^\s,\]])"
_NO_HOST = (
    r"(?!step|iter|epoch|batch|(?:eth|ib|bond|hsn|roce|mlx|bnxt|rdma|nvme|nvidia|md|dm-)_?\d"
    r"|en[ops]\d|sd[a-z]\d|gpu\d:|s3|http|sha\d|cuda|rank|xid)"
)
"""Counters, devices and services, which are what is spoken of."""
_HOST = rf"{_NO_HOST}[a-z](?=[\w.-]{{0,61}}\d)[\w.-]{{1,61}}(?::| {{1,2}}\|)(?= )"
_POD = r"\[pod/[\w./-]{1,120}\]|\[pod [\w.-]{1,80} container [\w.-]{1,60}\]|[\w.-]{1,60}/\d{1,5}(?= \[)"
_WHO = (
    r"\[\d{1,4},\d{1,6}\]<std(?:err|out)>:"
    r"|\[(?:rank|default|trainer|rank=|rank: )?\d{1,6}\]:?(?: \|\|)?"
    r"|\[\d{1,4},mpirank:\d{1,6},[\w-]{1,40}\]<std(?:err|out)>:"
    r"|\([\w-]{1,40}, rank=\d{1,6}, pid=\d{1,9}[^)\n]{0,60}\)"
    rf"|{_POD}"
    r"|<[\w.-]{0,60}> {1,12}(?=\[)"
    r"|[0-9a-f]{8}(?= \[rank=)|[0-9a-f]{8} \|\|(?= )"
    r"|[\w.-]{1,63}:\d{1,9}:\d{1,9}(?: \[\d{1,4}\])?(?= )"
    r"|\(raylet[^)\n]{0,60}\)|\(pid=\d{1,9}[^)\n]{0,60}\)"
    r"|std(?:err|out) [FP](?= )"
    r"|[\w.-]{1,63} [\w./-]{1,40}\[\d{1,9}\]:(?= )"
    r"|- [\w.-]{1,40} - [A-Z]{4,8} -(?= \[)"
    r"|\(\w{1,60} pid=\d{1,9}[^)\n]{0,60}\)"
    r"|std(?:err|out):"
    r"|\d{1,5}:(?= )"
    r"|\d{1,3}(?:\.\d{1,3}){3}:?(?= )"
    r"|[^\t\n]{1,60}\t[^\t\n]{1,60}\t(?=\d{4}-)"
    rf"|{_BAR}"
    r"|(?:ERROR|WARNING|INFO) \d\d-\d\d \d\d:\d\d:\d\d \S{1,60}\](?= )"
    r"|\[proxy:\d{1,4}:\d{1,6}@\S{1,80}\]"
    rf"|{_HOST}"
)
_BEGINNING = re.compile(rf" {{0,3}}(?:{_STAMP} ?|(?:{_WHO}) ?)(?:(?:{_STAMP}|{_WHO}) ?){{0,4}}", re.ASCII)
_LEVEL = re.compile(
    r"[IWEFVD]\d{4} \d\d:\d\d:\d\d\.\d{1,9} {1,4}\d{1,9} \S{1,120}:\d{1,6}\] ?"
    r"|^(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):[A-Za-z_][\w.]{0,80}:(?!/)",
    re.ASCII,
)
_NAME = re.compile(rf"(?<![\w\[<(])(?:{_POD}|{_HOST})", re.ASCII)
_OF_NOBODY = re.compile(f"{_STAMP}|{_BAR}", re.ASCII)
READ_WITHIN = 200
"""Characters at the beginning of a line in which its speaker is looked for."""


def parted(line: str) -> tuple[str, str]:
    """Who speaks, without stamps and bars, and what is said; what is indented keeps that.

    >>> parted("2021-03-10T13:22:37.443Z: [1,0]<stderr>:OSError: broken")
    ('[1,0]<stderr>:', 'OSError: broken')
    >>> parted("15: [rank15]:   File 'x.py', line 3")
    ('15: [rank15]:', "  File 'x.py', line 3")
    >>> parted("gpu003: RuntimeError: no fuel"), parted("RuntimeError: no fuel")
    (('gpu003:', 'RuntimeError: no fuel'), ('', 'RuntimeError: no fuel'))
    >>> parted(" 1%|#  | 24/1752 [01:08<1:22, 2.88s/it][rank5]:FATAL: no fuel")
    ('[rank5]:', 'FATAL: no fuel')
    """
    found = _BEGINNING.match(line[:READ_WITHIN])
    if found is None:
        return "", line
    return _OF_NOBODY.sub("", found[0]).strip(), line[found.end() :]


def said(line: str) -> str:
    """What is said in a line, whoever speaks."""
    return parted(line)[1]


def unnamed(line: str) -> str:
    """A line without the names of hosts and pods that stand before what is said.

    >>> unnamed("2026-11-29 10:00:00 spot-preemptible-1: [rank3]: it failed")
    '2026-11-29 10:00:00 [rank3]: it failed'
    """
    found = _BEGINNING.match(line[:READ_WITHIN])
    if found is None:
        return line
    before = " ".join(_NAME.sub("", found[0]).split())
    return f"{before} {line[found.end() :]}" if before else line[found.end() :]


def spoken(line: str) -> str:
    """What is said in a line, without the level and place that some loggers write before each line of it.

    >>> spoken("[rank0]:E0602 17:07:56.020000 82 torch/a.py:714]   File 'x.py', line 3")
    "  File 'x.py', line 3"
    """
    return _LEVEL.sub("", said(line), count=1)
