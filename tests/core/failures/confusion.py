"""The page that tells which class each labelled text was given: pure, to Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from labelled_logs import Labelled

from ett_core.failures import Diagnosis

HEAD = """# How the classifier does on labelled logs

Reductions of real logs of failed training jobs, each labelled by hand with its class and with the
classes that are also right. Generated: `pytest tests/core/failures/test_cases.py` prints this page and
compares.

The tables know these logs by now, so the figures below say that nothing got lost, not how well an unknown
log is read. That was seen once for each log: of the 120 that came third, labelled by somebody who had not
read the tables, 108 fell into an accepted class the first time (90 %), 4 were called certain and should not
have been, 2 of 12 that are no failure were called one, and 2 of the victims were given a root cause. The
tables were then mended for what they missed among 80 of these; of the other 40, unread, 32 were right before
and after: the mending alone did not carry over, and what was missed there was mended too. Of 61 short texts
that came after all of this, of other kinds of programs, 46 were right the first time (75 %).

Then 120 further logs came, when what stands behind the tables (the thing and the trouble that a line
names) was there: the first time 97 fell into an accepted class (81 %), 2 of the 39 that were called
certain should not have been (1 of them one of the 19 of which nobody can be), 3 of the 9 that show
victims only were given a root cause, and 2 of the 10 that are no failure were called one. What was missed
among 56 of them was mended (44 to 56 right); of the other 64, unread, 53 were right before and after (83
%; none falsely certain, no victim blamed, no false alarm), and what was missed there was mended last. Of
29 more 22 were right before and after (76 %; 1 of 4 certain ones falsely).

Then came 175 more, in three lots: the first time 155 fell into an accepted class (89 %), 5 of the 51 that
were called certain should not have been, 3 of the 22 that show victims only were given a root cause, and 2
of the 10 that are no failure were called one. The mistakes were mended by their kinds (below), one lot after
the other. Of the 133 that were unread while others were mended, 116 were right before and after (87 %): what
was mended holds for its kind, and the next lot brings other kinds. What each text means with lines before and
behind it, and with what printers write before each line, is tested too (`test_scan.py`). The kinds were:

- names that hold words of failures: of scripts, pods, hosts, settings, and of what was called
- words that do not stand where a line begins: behind a rank, a stamp, a host, a bar of progress, or below it
- a line that only tells of an effect, or of what another line said, taken for the cause
- a warning behind which the job goes on, and one that ends it
- a log that breaks off within a traceback
- words that two causes share (a mounted file and a socket), told apart by where they were raised

When it no longer mattered who printed a log, 18 more came, of launchers and Ray: 17 were right the first
time, and 15 without that.

Then came 94 logs, sought by 45 queries over the kinds of the first 50, all labelled before the first
run: then 85 fell into an accepted class (90 %), 5 of the 28 that were called certain should not have been,
and 1 of the 15 that show victims only was given a root cause. What was mended then is how logs are read,
and no row is of any of these texts: certain is only what three labelled logs bear out (or what is said by
who did it), an end of an unknown kind is no root, a launcher's report of an end names no cause, lines that
a terminal broke are read whole, and whether a checkpoint was saved or read is told by where an exception
was raised. By that 49 of the 51 in the half that was read are right (46 before), 1 of 14 is falsely
certain (3 of 18), and no victim is blamed (1 of 7); of the 43 unread, 39 were right before and after (91
%), none of 5 is falsely certain (2 of 10), and no victim is blamed, as before. 34 rows that decided
nothing more were taken out then; that changed nothing. Of the four misses of that half one
was mended later: a signal, in the words of torchrun.

Then came 68 logs of public threads, none of which had a labelled text yet, labelled before the first run:
then 57 fell into an accepted class (84 %), 4 of the 19 that were called certain should not have been, 1 of
the 11 that show victims only was given a root cause, and 4 of the 11 that are no failure were called one.
What was missed in the half that was read was mended by its kind (a count of corrupt images of a data set's
scan, what decoders of images warn of, a service thread's last words, a save that failed in the library
that writes the file, the compiler of a vendor): there 29 of 31 are right (25 before), 1 of 11 is falsely
certain (3 of 13), and none of 7 is a false alarm (3). Of the 37 unread, 32 were right before and after (86
%), 1 of 7 is falsely certain (1 of 6), 1 of 8 victims is blamed and 1 of 4 is a false alarm, as before.
What was missed there was mended last.

The last lot is 78 logs, again of threads of which nothing was labelled, over the kinds of the first 50,
labelled before the first run, by who then mended: 76 fell into an accepted class (97 %), none of the 19
that were called certain should not have been (29 leave it open), none of the 11 that show victims only was
given a root cause, and none of the 10 that are no failure were called one. In the half that was read 34 of
35 were right, then 35; in the other 42 of 43, before and after. Many of these labels accept several
classes (34 of 78 one alone).

How well a text is read that no row was written for is estimated in `benchmarks/failures/`: there each text
is read without the rows that only it needs.

"""


def page(judged: Sequence[tuple[Labelled, Diagnosis]]) -> str:
    """The page for labels and what was found of each."""
    right = sum(found.failure_class in label.accept for label, found in judged)
    exact = sum(label.failure_class == found.failure_class for label, found in judged)
    sure = [(label, found) for label, found in judged if found.confidence == "certain"]
    wrongly_sure = sum(
        not label.may_be_certain or found.failure_class not in label.accept for label, found in sure
    )
    victims = [found for label, found in judged if label.is_victim]
    blamed = sum(found.role == "root" for found in victims)
    lines = [
        f"- {right} of {len(judged)} fall into an accepted class, {exact} into the first one",
        f"- {len(sure)} are called certain, {wrongly_sure} of them wrongly",
        f"- {len(victims)} show victims only, {blamed} of them are given a root cause",
        "",
        "| labelled | found | logs | accepted |",
        "|---|---|---|---|",
    ]
    rows = Counter(
        (label.failure_class, found.failure_class, (found.failure_class in label.accept))
        for label, found in judged
    )
    lines += [
        f"| `{wanted}` | `{got}` | {count} | {'yes' if accepted else 'no'} |"
        for (wanted, got, accepted), count in sorted(rows.items())
    ]
    return HEAD + "\n".join(lines) + "\n"
